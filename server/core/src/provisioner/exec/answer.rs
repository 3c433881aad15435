//! What a program's end means: exit codes and the JSON on its standard output.
//!
//! | exit code | means |
//! | --- | --- |
//! | 0 | done; standard output holds the answer |
//! | 3 | the program cannot tell whether it was done |
//! | 75 | not done, trying again may help (`EX_TEMPFAIL` of sysexits.h) |
//! | any other up to 127 | not done, trying again will not help |
//! | more, or ended by a signal | nobody can tell |
//!
//! The answer to `apply` and `destroy` is `{"outputs": {…}, "message": "…"}`; both members may be left out, and
//! `destroy` may answer nothing at all. The answer to `observe` is
//! `{"state": "absent" | "before" | "present" | "foreign" | "unknown", "outputs": {…}, "message": "…"}`: `before` says that
//! the thing is there and bears the right mark, but what this update or action asks for is not done.

use super::{Observation, Outcome, log::Masks};
use domain::{json, view::Object};
use serde_json::Value;
use std::collections::BTreeSet;

/// The largest answer, in bytes.
pub(super) const MAX_ANSWER: usize = 1 << 20;

const CANNOT_TELL: i32 = 3;
const TRY_AGAIN: i32 = 75;
const LAST_OF_PROGRAM: i32 = 127;

/// How a run came to its end.
#[derive(Debug)]
pub(super) enum End {
    /// The guard ended with this code; none when a signal ended the guard itself.
    Exited(Option<i32>),
    /// The program took longer than it may and was ended.
    TimedOut,
    /// The program was ended because the portal asked for it.
    Stopped,
    /// Nothing was started.
    NotStarted(String),
}

/// What is left of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) end: End,
    /// What stood on standard output; nothing when it was too long or not read to its end.
    pub(super) answer: Option<Vec<u8>>,
    /// The last line of the log, masked.
    pub(super) last_line: Option<String>,
}

#[derive(Debug, Default)]
struct Answer {
    state: Option<String>,
    outputs: Object,
    message: Option<String>,
}

impl Run {
    /// What came of `apply` or `destroy`.
    pub(super) fn outcome(self, secret: &BTreeSet<String>, answer_needed: bool) -> Outcome {
        let code = match self.end {
            End::NotStarted(why) => return Outcome::Retryable(why),
            End::Stopped => return Outcome::Stopped,
            End::TimedOut => return Outcome::CannotTell("timed out".to_owned()),
            End::Exited(None) => {
                return Outcome::CannotTell("the process that guards the program was killed".to_owned());
            }
            End::Exited(Some(code)) => code,
        };
        if code == 0 {
            let blank = self.answer.as_ref().is_some_and(|answer| answer.trim_ascii().is_empty());
            if blank && !answer_needed {
                return Outcome::Done(Object::new());
            }
            return match read(self.answer.as_deref()) {
                Ok(Answer { state: Some(_), .. }) => Outcome::CannotTell(
                    "the program's answer has a member \"state\" where none belongs".to_owned(),
                ),
                Ok(answer) => Outcome::Done(answer.outputs),
                Err(why) => Outcome::CannotTell(why),
            };
        }
        let why = self.why(code, secret);
        match code {
            CANNOT_TELL => Outcome::CannotTell(why),
            TRY_AGAIN => Outcome::Retryable(why),
            1..=LAST_OF_PROGRAM => Outcome::Failed(why),
            _ => Outcome::CannotTell(why),
        }
    }

    /// What came of `observe`.
    pub(super) fn observation(self, secret: &BTreeSet<String>) -> Observation {
        let code = match self.end {
            End::NotStarted(why) => return Observation::CannotTell(why),
            End::Stopped => return Observation::CannotTell("stopped".to_owned()),
            End::TimedOut => return Observation::CannotTell("timed out".to_owned()),
            End::Exited(None) => {
                return Observation::CannotTell("the process that guards the program was killed".to_owned());
            }
            End::Exited(Some(code)) => code,
        };
        if code != 0 {
            return Observation::CannotTell(self.why(code, secret));
        }
        match read(self.answer.as_deref()) {
            Err(why) => Observation::CannotTell(why),
            Ok(answer) => match answer.state.as_deref() {
                Some("absent") => Observation::Absent,
                Some("present") => Observation::Ours(answer.outputs),
                Some("before") => Observation::Before(answer.outputs),
                Some("foreign") => Observation::Foreign,
                Some("unknown") => Observation::CannotTell(
                    answer.message.unwrap_or_else(|| "the program cannot tell".to_owned()),
                ),
                _ => Observation::CannotTell(
                    "the program's answer has no \"state\" of absent, before, present, foreign or unknown"
                        .to_owned(),
                ),
            },
        }
    }

    /// What the program says about its end: its message, or the last line of its log.
    fn why(&self, code: i32, secret: &BTreeSet<String>) -> String {
        let answer = read(self.answer.as_deref()).unwrap_or_default();
        let masks = Masks::of(&answer.outputs, secret);
        let said = answer.message.or_else(|| self.last_line.clone());
        let end = if code > 128 {
            format!("the program was ended by signal {}", code - 128)
        } else {
            format!("the program ended with exit code {code}")
        };
        match said {
            Some(said) => format!("{end}: {}", masks.masked(said.trim(), 500)),
            None => end,
        }
    }
}

/// Reads an answer; the reason says what is wrong with it and never shows it, for it may hold a secret.
fn read(answer: Option<&[u8]>) -> Result<Answer, String> {
    let bytes = answer
        .ok_or_else(|| format!("the program's answer is longer than {MAX_ANSWER} bytes or has no end"))?;
    if bytes.trim_ascii().is_empty() {
        return Err("the program ended well but gave no answer".to_owned());
    }
    let value = json::read(bytes).map_err(|error| {
        format!("the program's answer is not acceptable JSON (line {}, column {})", error.line, error.column)
    })?;
    if has_nul(&value) {
        return Err("the program's answer holds a NUL character".to_owned());
    }
    let Value::Object(members) = value else {
        return Err("the program's answer is not a JSON object".to_owned());
    };
    let mut answer = Answer::default();
    for (name, value) in members {
        match (name.as_str(), value) {
            ("outputs", Value::Object(outputs)) => answer.outputs = outputs,
            ("state", Value::String(state)) => answer.state = Some(state),
            ("message", Value::String(message)) => answer.message = Some(message),
            ("outputs" | "state" | "message", Value::Null) => {}
            ("outputs" | "state" | "message", _) => {
                return Err(format!("the member {name:?} of the program's answer has the wrong type"));
            }
            _ => {
                return Err(
                    "the program's answer has a member other than outputs, state and message".to_owned()
                );
            }
        }
    }
    Ok(answer)
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members.iter().any(|(name, member)| name.contains('\0') || has_nul(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32, answer: &str) -> Run {
        Run {
            end: End::Exited(Some(code)),
            answer: Some(answer.as_bytes().to_vec()),
            last_line: Some("last".to_owned()),
        }
    }

    fn outcome(code: i32, answer: &str) -> Outcome {
        ran(code, answer).outcome(&BTreeSet::new(), true)
    }

    #[test]
    fn every_exit_code_has_its_meaning() {
        assert!(matches!(outcome(0, r#"{"outputs":{"a":1}}"#), Outcome::Done(outputs) if outputs["a"] == 1));
        assert!(matches!(outcome(75, ""), Outcome::Retryable(why) if why.ends_with("exit code 75: last")));
        assert!(matches!(outcome(3, ""), Outcome::CannotTell(_)));
        for code in [1, 2, 4, 74, 76, 126, 127] {
            assert!(matches!(outcome(code, ""), Outcome::Failed(_)), "{code}");
        }
        for code in [128, 137, 255, -1] {
            assert!(matches!(outcome(code, ""), Outcome::CannotTell(_)), "{code}");
        }
        assert!(
            matches!(outcome(1, r#"{"message":"no room"}"#), Outcome::Failed(why) if why.ends_with("1: no room"))
        );
    }

    #[test]
    fn a_good_end_with_an_unreadable_answer_tells_nothing() {
        for answer in [
            "",
            "done",
            "[]",
            "{",
            r#"{"output":{}}"#,
            r#"{"outputs":[]}"#,
            r#"{"outputs":{},"outputs":{}}"#,
            r#"{"outputs":{"a":"\u0000"}}"#,
            r#"{"state":"present"}"#,
        ] {
            assert!(matches!(outcome(0, answer), Outcome::CannotTell(_)), "{answer}");
        }
        let cut = Run { end: End::Exited(Some(0)), answer: None, last_line: None };
        assert!(matches!(cut.outcome(&BTreeSet::new(), true), Outcome::CannotTell(_)));
        assert_eq!(ran(0, " \n").outcome(&BTreeSet::new(), false), Outcome::Done(Object::new()));
    }

    #[test]
    fn an_observation_needs_a_state_that_is_known() {
        let seen = |code, answer| ran(code, answer).observation(&BTreeSet::new());
        assert_eq!(seen(0, r#"{"state":"absent"}"#), Observation::Absent);
        assert_eq!(seen(0, r#"{"state":"foreign","outputs":{}}"#), Observation::Foreign);
        assert!(
            matches!(seen(0, r#"{"state":"present","outputs":{"a":1}}"#), Observation::Ours(o) if o["a"] == 1)
        );
        assert!(
            matches!(seen(0, r#"{"state":"before","outputs":{"a":1}}"#), Observation::Before(o) if o["a"] == 1)
        );
        for answer in [r#"{"state":"unknown"}"#, r#"{"state":"there"}"#, "{}", ""] {
            assert!(matches!(seen(0, answer), Observation::CannotTell(_)), "{answer}");
        }
        assert!(matches!(seen(1, r#"{"state":"absent"}"#), Observation::CannotTell(_)));
    }

    #[test]
    fn a_message_shows_no_secret() {
        let secret = BTreeSet::from(["password".to_owned()]);
        let run = ran(1, r#"{"outputs":{"password":"hunter2"},"message":"hunter2 is taken"}"#);
        assert!(
            matches!(run.outcome(&secret, true), Outcome::Failed(why) if why.ends_with(": *** is taken"))
        );
    }
}
