//! Guests that differ from an honest one in one place.

/// Put `value` at `address` into an honest preprocessor's answer.
macro_rules! prepared_with {
    ($address:expr, $value:expr) => {
        Guest::pre(|code| {
            honest(code);
            store(code, $address, $value);
            code.i32_const(ANSWER);
        })
    };
}

/// Put `value` at `address` into an honest postprocessor's answer.
macro_rules! responded_with {
    ($address:expr, $value:expr) => {
        Guest::post(|code| {
            responded(code);
            store(code, $address, $value);
            code.i32_const(ANSWER);
        })
    };
}

/// An honest preprocessor that returns this address.
macro_rules! returns {
    ($address:expr) => {
        Guest::pre(|code| {
            honest(code);
            code.i32_const($address);
        })
    };
}

/// A preprocessor that fails, in this way and with this text.
macro_rules! failed_with {
    ($kind:expr, $text:expr, $len:expr) => {
        Guest::pre(|code| {
            store(code, ANSWER, 1);
            store(code, ANSWER + 4, $kind);
            store(code, ANSWER + 8, $text);
            store(code, ANSWER + 12, $len);
            code.i32_const(ANSWER);
        })
    };
}

/// A postprocessor with this list of headers.
macro_rules! headers {
    ($list:expr, $len:expr) => {
        Guest::post(|code| {
            responded(code);
            store(code, ANSWER + 16, $list);
            store(code, ANSWER + 20, $len);
            code.i32_const(ANSWER);
        })
    };
}

/// A preprocessor that calls a function of the host with these words first.
macro_rules! calls {
    ($import:expr, $($word:expr),*) => {
        Guest::pre(|code| {
            $(code.i32_const($word);)*
            code.call($import.index());
            honest_pre(code);
        })
    };
}

/// A preprocessor that decodes its request's body.
macro_rules! decodes {
    ($color:expr, $result:expr) => {
        Guest::pre(|code| {
            code.local_get(BODY).i32_const($color).i32_const(1).i32_const($result);
            code.call(Import::PixelsDecode.index());
            honest_pre(code);
        })
    };
}

/// A preprocessor that creates a tensor of these six words and answers with it.
macro_rules! created {
    ($($word:expr),*) => {
        Guest::pre(|code| {
            $(code.i32_const($word);)*
            code.call(Import::TensorCreate.index());
            prepared(code);
            code.i32_const(ANSWER);
        })
    };
}
