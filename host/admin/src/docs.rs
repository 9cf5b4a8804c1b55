//! The description of the API as one page for people: HTML without scripts, made of the document.

use std::fmt::Write;

use serde_json::Value;

/// The page's style.
pub(crate) const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#222;background:#fff}\
code,pre{font-family:ui-monospace,monospace;font-size:.9em}\
table{border-collapse:collapse;width:100%;margin:.5rem 0 1rem}\
th,td{border-top:1px solid #ccc;padding:.25rem .5rem;text-align:left;vertical-align:top}\
details{border:1px solid #ccc;border-radius:.3rem;margin:.4rem 0;padding:.4rem .8rem}\
summary{cursor:pointer}\
summary b{display:inline-block;min-width:4.5rem}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}a{color:#8bf}}";

/// The methods in the order in which they are shown.
const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// The page for this document.
pub(crate) fn page(document: &Value) -> String {
    let mut html = Html(String::new());
    let info = &document["info"];
    let title = escaped(text(&info["title"]));
    html.add(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    ));
    html.paragraph(text(&info["description"]));
    html.add("<p><a href=\"openapi.json\">The same as an OpenAPI document</a></p>\n");
    let operations = operations(document);
    for group in groups(&operations) {
        html.add(&format!("<h2>{}</h2>\n", escaped(group)));
        for operation in operations.iter().filter(|operation| operation.group == group) {
            html.operation(operation, document);
        }
    }
    html.add("<h2>Documents</h2>\n");
    for (name, schema) in object(&document["components"]["schemas"]) {
        html.schema(name, schema);
    }
    html.add("</body>\n</html>\n");
    html.0
}

/// An operation of the document.
struct Shown<'a> {
    method: &'static str,
    path: &'a str,
    group: &'a str,
    operation: &'a Value,
}

fn operations(document: &Value) -> Vec<Shown<'_>> {
    let mut all = Vec::new();
    for (path, item) in object(&document["paths"]) {
        for method in METHODS {
            let operation = &item[method];
            if operation.is_object() {
                let group = text(&operation["tags"][0]);
                all.push(Shown { method, path, group, operation });
            }
        }
    }
    all
}

/// The groups, each once, in the order of their first paths.
fn groups<'a>(operations: &[Shown<'a>]) -> Vec<&'a str> {
    let mut groups = Vec::new();
    for Shown { group, .. } in operations {
        if !groups.contains(group) {
            groups.push(*group);
        }
    }
    groups
}

/// HTML that is being written.
struct Html(String);

impl Html {
    fn add(&mut self, html: &str) {
        self.0.push_str(html);
    }

    fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(&format!("<p>{}</p>\n", marked(text)));
        }
    }

    fn operation(&mut self, shown: &Shown<'_>, document: &Value) {
        let Shown { method, path, operation, .. } = shown;
        let (method, path) = (method.to_uppercase(), escaped(path));
        let summary = marked(text(&operation["summary"]));
        self.add(&format!(
            "<details><summary><b>{method}</b> <code>{path}</code> {summary}</summary>\n"
        ));
        self.paragraph(text(&operation["description"]));
        let parameters = list(&operation["parameters"]);
        if !parameters.is_empty() {
            self.add("<table><tr><th>parameter</th><th>in</th><th>value</th><th></th></tr>\n");
            for parameter in parameters {
                let name = named(text(&parameter["name"]), parameter["required"] == true);
                let place = escaped(text(&parameter["in"]));
                let (value, about) = (value(&parameter["schema"]), text(&parameter["description"]));
                self.row(&[name, place, value, marked(about)]);
            }
            self.add("</table>\n");
        }
        for (media_type, content) in object(&operation["requestBody"]["content"]) {
            let (media_type, value) = (escaped(media_type), value(&content["schema"]));
            self.add(&format!("<p>Body: <code>{media_type}</code>, {value}</p>\n"));
        }
        self.add("<table><tr><th>status</th><th>answer</th><th></th></tr>\n");
        for (status, answer) in object(&operation["responses"]) {
            let answer = match answer["$ref"].as_str().and_then(|to| to.strip_prefix('#')) {
                Some(pointer) => document.pointer(pointer).unwrap_or(answer),
                None => answer,
            };
            let content = object(&answer["content"]);
            let content = content.map(|(media_type, content)| {
                format!("<code>{}</code> {}", escaped(media_type), value(&content["schema"]))
            });
            let content = content.collect::<Vec<_>>().join(", ");
            self.row(&[escaped(status), content, marked(text(&answer["description"]))]);
        }
        self.add("</table></details>\n");
    }

    /// A named schema.
    fn schema(&mut self, name: &str, schema: &Value) {
        let shown = escaped(name);
        self.add(&format!("<h3 id=\"{shown}\">{shown}</h3>\n"));
        self.paragraph(text(&schema["description"]));
        let parts = [schema].into_iter().chain(list(&schema["allOf"]));
        let parts: Vec<_> = parts.filter(|part| part["properties"].is_object()).collect();
        if parts.is_empty() {
            self.add(&format!("<p>{}</p>\n", value(&without_text(schema))));
        }
        for part in parts {
            self.add("<table><tr><th>key</th><th>value</th><th></th></tr>\n");
            for (key, schema) in object(&part["properties"]) {
                let is_required = list(&part["required"]).iter().any(|name| name == key);
                let about = marked(text(&schema["description"]));
                self.row(&[named(key, is_required), value(schema), about]);
            }
            self.add("</table>\n");
        }
    }

    fn row(&mut self, cells: &[String]) {
        self.add("<tr>");
        for cell in cells {
            // Writing to a String cannot fail.
            let _ = write!(self.0, "<td>{cell}</td>");
        }
        self.add("</tr>\n");
    }
}

fn named(name: &str, is_required: bool) -> String {
    let mark = if is_required { " (required)" } else { "" };
    format!("<code>{}</code>{mark}", escaped(name))
}

/// The values that a schema allows, in a few words.
fn value(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.rsplit('/').next()) {
        let name = escaped(name);
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    for (key, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        let forms = list(&schema[key]);
        if !forms.is_empty() {
            return forms.iter().map(value).collect::<Vec<_>>().join(between);
        }
    }
    let types = match &schema["type"] {
        Value::String(one) => one.clone(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "any value".into(),
    };
    let mut words_of_type = escaped(&types);
    let values = list(&schema["enum"]);
    if !values.is_empty() {
        let values = values.iter().map(|value| format!("<code>{}</code>", escaped(&json(value))));
        words_of_type = values.collect::<Vec<_>>().join(", ");
    }
    if schema["items"].is_object() {
        let _ = write!(words_of_type, " of {}", value(&schema["items"]));
    }
    if schema["additionalProperties"].is_object() {
        let _ = write!(words_of_type, " of {}", value(&schema["additionalProperties"]));
    }
    if schema["properties"].is_object() {
        let keys = object(&schema["properties"]);
        let keys =
            keys.map(|(key, schema)| format!("<code>{}</code>: {}", escaped(key), value(schema)));
        let _ = write!(words_of_type, " with {}", keys.collect::<Vec<_>>().join("; "));
    }
    for (key, words) in [
        ("minimum", "from"),
        ("maximum", "to"),
        ("minLength", "at least characters:"),
        ("maxLength", "at most characters:"),
        ("minItems", "at least items:"),
        ("maxItems", "at most items:"),
        ("format", "format"),
        ("pattern", "like"),
        ("default", "default"),
    ] {
        if !schema[key].is_null() {
            let shown = schema[key].as_str().map_or_else(|| json(&schema[key]), str::to_owned);
            let _ = write!(words_of_type, ", {words} <code>{}</code>", escaped(&shown));
        }
    }
    words_of_type
}

/// The schema without its description.
fn without_text(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(keys) = schema.as_object_mut() {
        keys.remove("description");
    }
    schema
}

fn json(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The keys of an object; none of anything else.
fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The text as HTML.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// The text as HTML, what stands between backticks as code.
fn marked(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_has_every_operation_and_document() {
        let page = page(&crate::openapi::document().unwrap());
        for shown in [
            "<code>/admin/v1/tenants/{tenant}/plugins/{plugin}</code>",
            "<h3 id=\"ModelConfig\">",
            "<a href=\"#Pipeline\">Pipeline</a>",
            "<code>application/problem+json</code>",
            "<code>unprocessable</code>",
        ] {
            assert!(page.contains(shown), "{shown}");
        }
        assert!(!page.contains("<script") && !page.contains("http://"), "{page}");
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(marked("a `<b>` & \"c\""), "a <code>&lt;b&gt;</code> &amp; &quot;c&quot;");
        let schema = json!({ "type": ["string", "null"], "pattern": "<>", "maxLength": 2 });
        let expected =
            "string or null, at most characters: <code>2</code>, like <code>&lt;&gt;</code>";
        assert_eq!(value(&schema), expected);
        let one = json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Name" }] });
        assert_eq!(value(&one), "null or <a href=\"#Name\">Name</a>");
    }
}
