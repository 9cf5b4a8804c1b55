//! Looks the words of a text up in a vocabulary of 30,000 words. `init` reads the vocabulary, so no
//! request has to. The answer has the index of each word, and the number of times that this
//! instance and those before it read the vocabulary.
//!
//! `?anew=1` reads it again, as a plugin without `init` would do for each request.

use std::collections::HashMap;
use std::sync::Mutex;

use gristmill_plugin::{
    Context, Failure, Init, Outputs, Prepared, Processor, Request, Response, Tensor, info,
};

const WORDS: usize = 30_000;

struct Known {
    indices: HashMap<String, usize>,
    readings: u32,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Read the file: one word a line.
fn read(readings: u32) -> Known {
    let file: String = (0..WORDS).map(|word| format!("word-{word}\n")).collect();
    let indices = file.lines().enumerate().map(|(index, word)| (word.to_owned(), index));
    Known { indices: indices.collect(), readings }
}

struct Vocabulary;

impl Init for Vocabulary {
    fn init() -> Result<(), String> {
        let known = read(1);
        info!(words = known.indices.len(), "vocabulary read");
        *KNOWN.lock().map_err(|error| error.to_string())? = Some(known);
        Ok(())
    }
}

impl Processor for Vocabulary {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let mut known = KNOWN.lock().map_err(|error| Failure::internal(error.to_string()))?;
        let readings = known.as_ref().map_or(0, |known| known.readings);
        if readings == 0 || request.query_value("anew").is_some() {
            *known = Some(read(readings + 1));
        }
        let known = known.as_ref().ok_or_else(|| Failure::internal("no vocabulary"))?;
        let text = request.text()?;
        let index = |word: &str| match known.indices.get(word) {
            Some(index) => index.to_string(),
            None => "unknown".to_owned(),
        };
        let indices: Vec<_> = text.split_whitespace().map(index).collect();
        let answer = format!("{}; read {} times", indices.join(" "), known.readings);
        let input = Tensor::from_slice(&[1, 1, 28, 28], &[0.0_f32; 784])?;
        Ok(Prepared::new().input("input", input).state(answer.into_bytes()))
    }

    fn postprocess(
        _context: &Context,
        _outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure> {
        Ok(Response::new("text/plain", state))
    }
}

gristmill_plugin::export_processor!(Vocabulary, init);
