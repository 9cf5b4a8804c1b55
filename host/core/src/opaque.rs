//! A wall for the compiler: what is behind it is not looked at when it has to be shown that a type
//! can be sent to other threads.
//!
//! Each async function has to be shown to be `Send`, and many reach nearly all types of the server.
//! Those of wasmtime refer to one another in circles, through which the compiler looks again for
//! each such function: without the walls, building `admin` takes six minutes.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A `T` behind the wall. Access costs a comparison of type ids.
pub struct Opaque<T> {
    value: Box<dyn Any + Send + Sync>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Any + Send + Sync> Opaque<T> {
    /// Put the value behind the wall.
    pub fn new(value: T) -> Self {
        Self { value: Box::new(value), kind: PhantomData }
    }
}

impl<T: Any> Deref for Opaque<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self.value.downcast_ref() {
            Some(value) => value,
            None => unreachable!("it was made of a T"),
        }
    }
}

impl<T: Any> DerefMut for Opaque<T> {
    fn deref_mut(&mut self) -> &mut T {
        match self.value.downcast_mut() {
            Some(value) => value,
            None => unreachable!("it was made of a T"),
        }
    }
}
