//! A program's environment: nothing of the server's own but where programs, home and temporary files are, and the job
//! in words that a shell can use.
//!
//! `KEYTURN_REQUEST_ID`, `KEYTURN_MADE_BY` (the request that made the thing), `KEYTURN_CORRELATION_ID`, `KEYTURN_ATTEMPT`,
//! `KEYTURN_TEAM`, `KEYTURN_ACTION` (`create`, `update`, `delete`, or the ID of an action of the offering's),
//! `KEYTURN_UNDO` (`true` where a change is taken back, else `false`), `KEYTURN_NAME`, `KEYTURN_STATE_DIR` (a folder of the
//! offering's own), `KEYTURN_PARAM_<NAME>` for every parameter of the resource, and `KEYTURN_INPUT_<NAME>` for every
//! parameter of the action's own: the name in upper case with `_` for what is neither letter nor digit; a text as it is,
//! an array of texts one a line, anything else as JSON. What an environment cannot carry (a value of more than 64 KiB, a
//! text with a line break inside an array) stands only in the JSON on standard input, and `KEYTURN_PARAMS_LEFT_OUT` lists
//! those variables.

use super::Job;
use serde_json::Value;
use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// What a parameter may take up; the kernel takes at most 128 KiB a variable.
const MAX_VALUE: usize = 64 << 10;

/// What all parameters may take up together; the kernel takes about 2 MiB with the arguments.
const MAX_ALL: usize = 512 << 10;

/// What programs are found in when the server itself was started without a `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The prefix of a parameter's variable.
pub(crate) const PARAMETER: &str = "KEYTURN_PARAM_";

/// The variables of a job.
pub(crate) fn of(job: &Job, state: &Path) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = ["PATH", "HOME", "LANG", "TMPDIR"]
        .into_iter()
        .filter_map(|name| std::env::var_os(name).map(|value| (name.into(), value)))
        .collect();
    if !variables.iter().any(|(name, _)| name == "PATH") {
        variables.push(("PATH".into(), PATH.into()));
    }
    let mut set =
        |name: &str, value: &dyn AsRef<OsStr>| variables.push((name.into(), value.as_ref().to_owned()));
    set("KEYTURN_REQUEST_ID", &job.request_id.to_string());
    set("KEYTURN_MADE_BY", &job.made_by.to_string());
    set("KEYTURN_CORRELATION_ID", &job.correlation_id);
    set("KEYTURN_ATTEMPT", &job.attempt.to_string());
    set("KEYTURN_TEAM", &job.team.as_str());
    set("KEYTURN_ACTION", &job.action);
    set("KEYTURN_UNDO", &job.undo.to_string());
    set("KEYTURN_NAME", &job.name.as_str());
    set("KEYTURN_STATE_DIR", &state);
    let (mut left_out, mut all) = (Vec::new(), 0);
    let parameters = job.parameters.iter().map(|parameter| (PARAMETER, parameter));
    let input = job.input.iter().map(|parameter| (INPUT, parameter));
    for (prefix, (name, value)) in parameters.chain(input) {
        let Some(variable) = variable(prefix, name) else { continue };
        match carried(value) {
            Some(text) if all + text.len() <= MAX_ALL => {
                all += text.len();
                set(&variable, &text);
            }
            _ => left_out.push(variable),
        }
    }
    if !left_out.is_empty() {
        set("KEYTURN_PARAMS_LEFT_OUT", &left_out.join(" "));
    }
    variables
}

/// The prefix of the variable of an action's own parameter.
pub(crate) const INPUT: &str = "KEYTURN_INPUT_";

/// The variable of a parameter; none for a name that no shell could spell.
pub(crate) fn variable(prefix: &str, parameter: &str) -> Option<String> {
    let plain = parameter.len() <= 64
        && parameter.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let upper = || parameter.to_ascii_uppercase().replace(['-', '.'], "_");
    (plain && !parameter.is_empty()).then(|| format!("{prefix}{}", upper()))
}

/// The value as a variable holds it; none if one cannot.
fn carried(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            if texts.iter().any(|text| text.contains('\n')) {
                return None;
            }
            texts.join("\n")
        }
        other => other.to_string(),
    };
    (text.len() <= MAX_VALUE && !text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::view::Object;
    use serde_json::json;

    #[test]
    fn a_shell_finds_the_job_in_its_environment() {
        let parameters = json!({
            "text": "a \"b\" $(c)\nd", "list": ["x", "y"], "count": 3, "on": true, "deep": {"a": [1]}, "mixed": ["a", 1],
            "with-dash": "z", "long": "x".repeat(MAX_VALUE + 1), "broken": ["a\nb"], "=bad name": "x", "empty": []
        });
        let mut job = crate::provisioner::tests::job("vm-one", parameters);
        job.input = Object::from_iter([("count".to_owned(), json!(2)), ("long".to_owned(), json!("x"))]);
        let variables = of(&job, Path::new("/state/vm"));
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        for (name, value) in [
            ("NAME", "vm-one"),
            ("TEAM", "team-a"),
            ("ATTEMPT", "1"),
            ("ACTION", "create"),
            ("UNDO", "false"),
            ("INPUT_COUNT", "2"),
            ("INPUT_LONG", "x"),
            ("STATE_DIR", "/state/vm"),
            ("CORRELATION_ID", "payment-ORD-123"),
            ("PARAM_TEXT", "a \"b\" $(c)\nd"),
            ("PARAM_LIST", "x\ny"),
            ("PARAM_COUNT", "3"),
            ("PARAM_ON", "true"),
            ("PARAM_DEEP", r#"{"a":[1]}"#),
            ("PARAM_MIXED", r#"["a",1]"#),
            ("PARAM_WITH_DASH", "z"),
            ("PARAM_EMPTY", ""),
            ("PARAMS_LEFT_OUT", "KEYTURN_PARAM_BROKEN KEYTURN_PARAM_LONG"),
        ] {
            assert_eq!(get(&format!("KEYTURN_{name}")).as_deref(), Some(value), "{name}");
        }
        assert_eq!(get("KEYTURN_PARAM_LONG"), None);
        assert_eq!(get("KEYTURN_REQUEST_ID"), Some(job.request_id.to_string()));
        assert_eq!(get("KEYTURN_MADE_BY"), Some(job.made_by.to_string()));
        let ours =
            variables.iter().filter(|(name, _)| name.to_str().unwrap().starts_with("KEYTURN_")).count();
        assert_eq!(
            variables.len() - ours,
            variables
                .iter()
                .filter(|(name, _)| { ["PATH", "HOME", "LANG", "TMPDIR"].iter().any(|known| name == known) })
                .count()
        );
    }
}
