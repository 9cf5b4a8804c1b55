//! What componentize-py says when a build fails, made shorter, and a remedy for what is met most.

/// Packages with compiled parts that people import first, by the names of their modules.
const COMPILED: [&str; 12] = [
    "PIL",
    "cv2",
    "lightgbm",
    "numpy",
    "onnxruntime",
    "pandas",
    "scipy",
    "skimage",
    "sklearn",
    "tokenizers",
    "torch",
    "transformers",
];

/// The lines at which the tool's own frames begin. None of them is of the plugin.
const FRAMES: [&str; 3] = ["Stack backtrace:", "wasm backtrace:", "error while executing at wasm"];

/// The part of the tool's text that is about the plugin.
pub(super) fn shown(text: &str) -> String {
    let is_frames = |line: &&str| FRAMES.iter().any(|frames| line.contains(frames));
    let lines = text.lines().take_while(|line| !is_frames(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What can be done about it.
pub(super) fn remedy(text: &str) -> Option<String> {
    let (_, after) = text.rsplit_once("No module named '")?;
    let (module, _) = after.split_once('\'')?;
    let package = module.split('.').next()?;
    Some(match COMPILED.contains(&package) {
        true => format!(
            "a plugin has no packages with compiled parts, and {package} is one: the SDK decodes and \
             scales pictures (Pixels), makes and reads tensors (Tensor, softmax, argmax) and reads \
             JSON; sdk/python/README.md says how"
        ),
        false => format!(
            "name its package in requirements.txt in the plugin's folder, for example {package}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "AssertionError: Traceback (most recent call last):
  File \"app.py\", line 3, in <module>
ModuleNotFoundError: No module named 'numpy.linalg'

Stack backtrace:
   0: anyhow::error::<impl anyhow::Error>::msg
";

    #[test]
    fn the_plugins_part_is_shown_with_a_remedy() {
        let shown = shown(TEXT);
        assert!(shown.ends_with("No module named 'numpy.linalg'\n\n"), "{shown}");
        let hint = remedy(TEXT).unwrap();
        assert!(hint.contains("numpy is one") && hint.contains("sdk/python/README.md"), "{hint}");
        let hint = remedy("ModuleNotFoundError: No module named 'six'").unwrap();
        assert!(hint.contains("requirements.txt"), "{hint}");
        assert_eq!(remedy("SyntaxError: invalid syntax"), None);
    }
}
