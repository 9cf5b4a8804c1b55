//! Calling a plugin under `cargo test`, without a server.
//!
//! On targets other than WebAssembly the SDK's calls work on a reference host in the test's
//! process, whose tensors and pictures give the host's numbers. It has no limits, no budgets and no
//! deadline. Decoding and resizing pictures needs the feature `testing-images`:
//!
//! ```toml
//! [dev-dependencies]
//! gristmill-plugin = { path = "..", features = ["testing-images"] }
//! ```
//!
//! A test makes a context and a request, calls the plugin's function, and looks at the result:
//!
//! ```
//! use gristmill_plugin::{Context, Failure, Outputs, Prepared, Processor, Request, Response,
//! Tensor}; use gristmill_plugin::{info, testing};
//!
//! struct Doubler;
//!
//! impl Processor for Doubler {
//!     fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
//!         let values: Vec<f32> = request.json()?;
//!         info!(values = values.len(), "got a request");
//!         Ok(Prepared::new().input("input", Tensor::from_slice(&[values.len(), 1], &values)?))
//!     }
//!
//!     fn postprocess(_: &Context, outputs: Outputs, _: Vec<u8>) -> Result<Response, Failure> {
//!         Response::json(outputs.view::<f32>("output", &[None, Some(1)])?.as_slice())
//!     }
//! }
//!
//! let context = testing::context().build();
//! let request = testing::request().body("[1, 2]").build();
//! let prepared = Doubler::preprocess(&context, &request)?;
//! assert_eq!(prepared.get("input").unwrap().dims(), [2, 1]);
//! assert_eq!(testing::take_log()[0].message, "got a request");
//!
//! let outputs = testing::outputs([("output", Tensor::from_slice(&[2, 1], &[2.0_f32, 4.0])?)]);
//! let response = Doubler::postprocess(&context, outputs, prepared.state)?;
//! assert_eq!(response.body, b"[2.0,4.0]");
//! # Ok::<(), Failure>(())
//! ```
//!
//! The models of a [`Handler`](crate::Handler) are functions here: see [`model`]. Stores are maps:
//! see [`store`], and tables, too: see [`table`]. Files are those in the crate's folder `assets/`,
//! and those of [`asset`]. A tokenizer is a list of words: see [`tokenizer`].

#[cfg(feature = "http")]
mod service;

use std::rc::Rc;

use serde::Serialize;

#[cfg(feature = "http")]
pub use self::service::{TestService, service};
use crate::bindings::assets as host_assets;
pub use crate::bindings::log::LogLine;
use crate::bindings::models;
use crate::bindings::store as host_store;
use crate::bindings::tables as host_tables;
use crate::bindings::tokenizer as host_tokenizer;
use crate::{Blob, Context, Field, InferError, NamedTensor, Outputs, Part, Request, Tensor};

/// A context of tenant, pipeline, model and request `"test"`, with empty settings and ten seconds
/// left.
pub fn context() -> ContextBuilder {
    let test = || "test".to_owned();
    ContextBuilder(Context {
        tenant: test(),
        pipeline: test(),
        model: test(),
        request_id: test(),
        settings: "{}".into(),
        time_left_ms: 10_000,
    })
}

/// Makes a [`Context`].
#[derive(Debug)]
pub struct ContextBuilder(Context);

impl ContextBuilder {
    /// With this name of the tenant.
    pub fn tenant(mut self, name: &str) -> Self {
        self.0.tenant = name.into();
        self
    }

    /// With this name of the pipeline.
    pub fn pipeline(mut self, name: &str) -> Self {
        self.0.pipeline = name.into();
        self
    }

    /// With this name of the model.
    pub fn model(mut self, name: &str) -> Self {
        self.0.model = name.into();
        self
    }

    /// With this id of the request.
    pub fn request_id(mut self, id: &str) -> Self {
        self.0.request_id = id.into();
        self
    }

    /// With `settings` as the pipeline's settings.
    ///
    /// # Panics
    /// If they cannot be written as JSON.
    pub fn settings<T: Serialize + ?Sized>(mut self, settings: &T) -> Self {
        self.0.settings = serde_json::to_string(settings).expect("settings are JSON");
        self
    }

    /// With this many milliseconds left. They do not pass.
    pub fn time_left(mut self, milliseconds: u64) -> Self {
        self.0.time_left_ms = milliseconds;
        self
    }

    /// The context.
    pub fn build(self) -> Context {
        self.0
    }
}

/// A request with an empty body and nothing else.
pub fn request() -> RequestBuilder {
    RequestBuilder(Request {
        content_type: None,
        headers: Vec::new(),
        query: Vec::new(),
        body: blob([]),
        parts: Vec::new(),
    })
}

/// Makes a [`Request`].
#[derive(Debug)]
pub struct RequestBuilder(Request);

impl RequestBuilder {
    /// With this body.
    pub fn body(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.body = blob(bytes);
        self
    }

    /// With `value` as a body of JSON, and the content type `application/json`.
    ///
    /// # Panics
    /// If it cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Self {
        let body = serde_json::to_vec(value).expect("the body is JSON");
        self.body(body).content_type("application/json")
    }

    /// With this media type.
    pub fn content_type(mut self, media_type: &str) -> Self {
        self.0.content_type = Some(media_type.into());
        self
    }

    /// With a further header. The host gives names in lower case.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.0.headers.push(Field { name: name.to_lowercase(), value: value.into() });
        self
    }

    /// With a further query parameter.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.0.query.push(Field { name: name.into(), value: value.into() });
        self
    }

    /// With a further part of a form, and the content type `multipart/form-data`.
    pub fn part(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let (filename, content_type) = (None, None);
        self.with_part(Part { name: name.into(), filename, content_type, body: blob(bytes) })
    }

    /// With a further part of a form, which is a file, and the content type `multipart/form-data`.
    pub fn file(
        self,
        name: &str,
        filename: &str,
        content_type: &str,
        bytes: impl AsRef<[u8]>,
    ) -> Self {
        self.with_part(Part {
            name: name.into(),
            filename: Some(filename.into()),
            content_type: Some(content_type.into()),
            body: blob(bytes),
        })
    }

    fn with_part(mut self, part: Part) -> Self {
        self.0.parts.push(part);
        self.content_type("multipart/form-data")
    }

    /// The request.
    pub fn build(self) -> Request {
        self.0
    }
}

/// The model's outputs, in this order.
pub fn outputs<'a>(tensors: impl IntoIterator<Item = (&'a str, Tensor)>) -> Outputs {
    let named = |(name, tensor): (&str, Tensor)| NamedTensor { name: name.into(), tensor };
    Outputs::new(tensors.into_iter().map(named).collect())
}

/// Let this thread's runs of the model `name` call `function`, until the returned value is dropped.
/// The function gets the inputs with their names and returns the outputs. Of models of one name,
/// the last one counts. Runs of a model that no test has registered end in
/// [`InferError::NotGranted`].
///
/// ```
/// use gristmill_plugin::{Context, HandleError, Handler, InferError, Request, Response, Tensor};
/// use gristmill_plugin::{models, testing};
///
/// struct Scores;
///
/// impl Handler for Scores {
///     fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
///         let values: Vec<f32> = request.json()?;
///         let input = Tensor::from_slice(&[values.len(), 1], &values)?;
///         let outputs = models::infer("ranker", &[("input", &input)])?;
///         Ok(Response::json(outputs.get("output")?)?)
///     }
/// }
///
/// let context = testing::context().build();
/// let request = testing::request().body("[1, 2]").build();
/// let _ranker = testing::model("ranker", |inputs| {
///     let [("input", input)] = inputs else { panic!("{inputs:?}") };
///     assert_eq!(input.dims(), [2, 1]);
///     let scores = Tensor::from_slice(&[2, 1], &[0.5_f32, 0.25]).unwrap();
///     Ok(testing::outputs([("output", scores)]))
/// });
/// assert_eq!(Scores::handle(&context, &request)?.body, b"[[0.5],[0.25]]");
///
/// let _busy = testing::model("ranker", |_| Err(InferError::Overloaded("busy".into())));
/// let error = Scores::handle(&context, &request).unwrap_err();
/// assert_eq!(error, HandleError::Infer(InferError::Overloaded("busy".into())));
/// # Ok::<(), HandleError>(())
/// ```
pub fn model(
    name: &str,
    function: impl Fn(&[(&str, &Tensor)]) -> Result<Outputs, InferError> + 'static,
) -> RegisteredModel {
    let model: Rc<models::Model> =
        Rc::new(move |inputs: &[(&str, &Tensor)]| function(inputs).map(Outputs::into_named));
    models::register(name, Rc::clone(&model));
    RegisteredModel(model)
}

/// A model of a test. It is there until this is dropped.
#[must_use = "the model is there until this value is dropped"]
pub struct RegisteredModel(Rc<models::Model>);

impl Drop for RegisteredModel {
    fn drop(&mut self) {
        models::remove(&self.0);
    }
}

/// Let this thread's calls of the store `name` find the values of the returned one, until it is
/// dropped. Of stores of one name, the last one counts. Calls of a store that no test has made end
/// in [`StoreError::NotGranted`](crate::store::StoreError::NotGranted).
///
/// ```
/// use gristmill_plugin::{store, testing};
///
/// let features = testing::store("features");
/// features.put("user:7", 0.5_f32.to_le_bytes());
/// let rows = store::gather("features", &["user:7", "user:8"], 1, -1.0)?;
/// assert_eq!(rows.view::<f32>().unwrap().as_slice(), [0.5, -1.0]);
/// # Ok::<(), store::StoreError>(())
/// ```
pub fn store(name: &str) -> TestStore {
    let bucket = Rc::<host_store::Bucket>::default();
    host_store::register(name, Rc::clone(&bucket));
    TestStore(bucket)
}

/// A store of a test. It is there until this is dropped.
#[must_use = "the store is there until this value is dropped"]
pub struct TestStore(Rc<host_store::Bucket>);

impl TestStore {
    /// As a tenant has it whose document grants it for reading only.
    pub fn read_only(self) -> Self {
        self.0.is_read_only.set(true);
        self
    }

    /// Set the value of a key.
    pub fn put(&self, key: &str, value: impl AsRef<[u8]>) {
        self.0.values.borrow_mut().insert(key.into(), value.as_ref().into());
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.0.values.borrow().get(key).cloned()
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        host_store::remove(&self.0);
    }
}

/// Let this thread's calls open the file `name` with these bytes, until the returned value is
/// dropped. Of files of one name, the last one counts. It hides one in the crate's folder
/// `assets/`.
///
/// ```
/// use gristmill_plugin::{assets, testing};
///
/// let _prices = testing::asset("prices.json", "{\"apple\": 3}");
/// assert_eq!(assets::read("prices.json")?, b"{\"apple\": 3}");
/// # Ok::<(), assets::AssetError>(())
/// ```
pub fn asset(name: &str, bytes: impl AsRef<[u8]>) -> TestAsset {
    let (name, bytes) = (name.to_owned(), bytes.as_ref().to_vec());
    let file = Rc::new(host_assets::File { name, bytes });
    host_assets::register(Rc::clone(&file));
    TestAsset(file)
}

/// A file of a test. It is there until this is dropped.
#[must_use = "the file is there until this value is dropped"]
pub struct TestAsset(Rc<host_assets::File>);

impl Drop for TestAsset {
    fn drop(&mut self) {
        host_assets::remove(&self.0);
    }
}

/// Let this thread's calls of the [`tables`](crate::tables) find the rows of the returned value in
/// the file `asset`, until it is dropped. `columns` are the names of the columns.
///
/// ```
/// use gristmill_plugin::{tables, testing};
///
/// let products = testing::table("products.csv", &["price", "rating"]);
/// products.put("7", &[9.5, 4.0]);
/// let rows = tables::gather("products.csv", &["7", "8"], 2, -1.0)?;
/// assert_eq!(rows.view::<f32>().unwrap().as_slice(), [9.5, 4.0, -1.0, -1.0]);
/// # Ok::<(), tables::TableError>(())
/// ```
pub fn table(asset: &str, columns: &[&str]) -> TestTable {
    let columns = columns.iter().map(|column| (*column).to_owned()).collect();
    let table = host_tables::Table { name: asset.to_owned(), columns, rows: Default::default() };
    let table = Rc::new(table);
    host_tables::register(Rc::clone(&table));
    TestTable(table)
}

/// A table of a test. It is there until this is dropped.
#[must_use = "the table is there until this value is dropped"]
pub struct TestTable(Rc<host_tables::Table>);

impl TestTable {
    /// Set the row of a key.
    ///
    /// # Panics
    /// If it does not have a number for each column.
    pub fn put(&self, key: &str, row: &[f32]) {
        assert_eq!(row.len(), self.0.columns.len(), "a number for each column");
        self.0.rows.borrow_mut().insert(key.to_owned(), row.to_vec());
    }
}

impl Drop for TestTable {
    fn drop(&mut self) {
        host_tables::remove(&self.0);
    }
}

/// Let this thread's calls of the [`tokenizer`](crate::tokenizer) `asset` split texts at white
/// space, until the returned value is dropped. The id of a word is its place in `words`. `[CLS]`,
/// `[SEP]`, `[PAD]` and `[UNK]` are what BERT has them for, as far as they are among the words.
///
/// ```
/// use gristmill_plugin::{testing, tokenizer};
///
/// let _words = testing::tokenizer("tokenizer.json", &["[PAD]", "[UNK]", "good"]);
/// let tokens = tokenizer::encode("tokenizer.json", "so good", &tokenizer::options())?;
/// assert_eq!(tokens.ids.view::<i64>().unwrap().as_slice(), [1, 2]);
/// # Ok::<(), tokenizer::TokenizerError>(())
/// ```
pub fn tokenizer(asset: &str, words: &[&str]) -> TestTokenizer {
    let words: host_tokenizer::Words = words.iter().map(|word| (*word).to_owned()).collect();
    let words = Rc::new(words);
    host_tokenizer::register(asset, Rc::clone(&words));
    TestTokenizer(words)
}

/// A tokenizer of a test. It is there until this is dropped.
#[must_use = "the tokenizer is there until this value is dropped"]
pub struct TestTokenizer(Rc<host_tokenizer::Words>);

impl Drop for TestTokenizer {
    fn drop(&mut self) {
        host_tokenizer::remove(&self.0);
    }
}

/// Bytes as the host holds them.
pub fn blob(bytes: impl AsRef<[u8]>) -> Blob {
    Blob(bytes.as_ref().into())
}

/// The lines that this thread logged since the last call. They are printed as well, so that the
/// report of a test that fails has them.
pub fn take_log() -> Vec<LogLine> {
    crate::bindings::log::take()
}
