//! Removing a library's folder from its texts.

use std::path::Path;

/// `text` with paths of files beside `library` replaced by file names. ONNX Runtime names its
/// providers' libraries by their paths when it cannot load them.
pub(crate) fn without_folder(text: &str, library: Option<&Path>) -> String {
    let folder = library.and_then(Path::parent).and_then(Path::to_str);
    match folder.filter(|folder| folder.len() > 1) {
        Some(folder) => text.replace(&format!("{folder}/"), ""),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_no_folder_of_the_library() {
        let library = Path::new("/opt/runtime/lib/libonnxruntime.so");
        let text =
            "Failed to load library /opt/runtime/lib/libonnxruntime_providers_cuda.so with error";
        let expected = "Failed to load library libonnxruntime_providers_cuda.so with error";
        assert_eq!(without_folder(text, Some(library)), expected);
        assert_eq!(without_folder(text, None), text);
        assert_eq!(without_folder("a/b", Some(Path::new("/lib.so"))), "a/b");
    }
}
