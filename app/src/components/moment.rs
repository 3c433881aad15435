//! A moment: UTC in the page as it comes, the reader's own time, with the zone's name, once script runs.

use domain::{expiry::Nearness, time::Moment};
use leptos::prelude::*;
use wasm_bindgen::JsValue;

/// Whether script has taken the page over. In the context of every page.
#[derive(Debug, Clone, Copy)]
pub struct Scripted(pub RwSignal<bool>);

impl Scripted {
    /// Whether script runs; false while the page is made and taken over.
    #[must_use]
    pub fn get(self) -> bool {
        self.0.get()
    }

    /// The one of this page.
    #[must_use]
    pub fn here() -> Self {
        use_context().unwrap_or_else(|| Self(RwSignal::new(false)))
    }
}

/// A moment.
#[component]
pub fn When(
    /// The moment.
    at: Moment,
) -> impl IntoView {
    let scripted = Scripted::here();
    let exact = at.to_string();
    let text = move || if scripted.get() { local(at) } else { utc(at) };
    view! { <time datetime=exact.clone() title=exact>{text}</time> }
}

/// When something ends: how long that is from now once script runs, and the moment.
#[component]
pub fn Ends(
    /// The moment.
    at: Moment,
    /// How near it is, by the server's clock.
    near: Nearness,
) -> impl IntoView {
    let scripted = Scripted::here();
    let exact = at.to_string();
    let text = move || {
        if scripted.get() {
            format!("{}, on {}", ends(at.millis() - browser_now()), local(at))
        } else {
            let verb = if near == Nearness::Past { "expired" } else { "expires" };
            format!("{verb} on {}", utc(at))
        }
    };
    view! { <time datetime=exact.clone() title=exact>{text}</time> }
}

/// How much the end of something stands out.
#[must_use]
pub fn urgency(near: Nearness) -> &'static str {
    match near {
        Nearness::Far => "",
        Nearness::Near => "note caution",
        Nearness::Past => "note wrong",
    }
}

/// What the browser's clock shows. Never asked on the server.
#[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 are far below 2^53")]
pub(crate) fn browser_now() -> i64 {
    js_sys::Date::now() as i64
}

/// Says in how many milliseconds something ends, or since when it is over, in the largest unit that there is one whole of.
fn ends(millis: i64) -> String {
    let minutes = millis.unsigned_abs() / 60_000;
    let (number, unit) = match minutes {
        0 => return if millis > 0 { "expires within a minute" } else { "expired just now" }.to_owned(),
        1..120 => (minutes, "minute"),
        120..2880 => (minutes / 60, "hour"),
        _ => (minutes / 1440, "day"),
    };
    let many = if number == 1 { "" } else { "s" };
    if millis > 0 {
        format!("expires in {number} {unit}{many}")
    } else {
        format!("expired {number} {unit}{many} ago")
    }
}

/// The name of the reader's time zone once script runs; nothing before, when nobody can know it.
#[must_use]
pub fn reader_zone() -> Memo<Option<String>> {
    let scripted = Scripted::here();
    Memo::new(move |_| scripted.get().then(browser_zone).flatten())
}

fn browser_zone() -> Option<String> {
    let format = js_sys::Intl::DateTimeFormat::new(&js_sys::Array::new(), &js_sys::Object::new());
    js_sys::Reflect::get(&format.resolved_options(), &"timeZone".into()).ok()?.as_string()
}

/// As `2026-01-31 12:00:00 UTC`.
#[must_use]
pub fn utc(at: Moment) -> String {
    let exact = at.to_string();
    let (date, time) = exact.split_once('T').unwrap_or((&exact, ""));
    format!("{date} {} UTC", time.get(..8).unwrap_or(time))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are far below 2^53")]
fn local(at: Moment) -> String {
    let options = js_sys::Object::new();
    for (name, value) in [
        ("year", "numeric"),
        ("month", "short"),
        ("day", "numeric"),
        ("hour", "2-digit"),
        ("minute", "2-digit"),
        ("second", "2-digit"),
        ("timeZoneName", "short"),
    ] {
        let _ = js_sys::Reflect::set(&options, &name.into(), &value.into());
    }
    let date = js_sys::Date::new(&JsValue::from_f64(at.millis() as f64));
    String::from(date.to_locale_string("en-GB", &options))
}

/// A length of time as people say it, its two largest units.
#[must_use]
pub fn apart(millis: i64) -> String {
    let seconds = millis / 1000;
    if seconds == 0 {
        return format!("{millis} ms");
    }
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let first = units.iter().position(|(_, length)| seconds >= *length).unwrap_or(3);
    let (name, length) = units[first];
    let whole = format!("{} {name}", seconds / length);
    match units.get(first + 1).map(|(name, smaller)| (name, seconds % length / smaller)) {
        Some((name, rest)) if rest > 0 => format!("{whole} {rest} {name}"),
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_readable_without_script() {
        assert_eq!(utc(Moment::from_millis(1_700_000_000_042)), "2023-11-14 22:13:20 UTC");
    }

    #[test]
    fn an_end_is_said_in_the_largest_unit_that_there_is_one_whole_of() {
        for (millis, text) in [
            (1, "expires within a minute"),
            (0, "expired just now"),
            (60_000, "expires in 1 minute"),
            (7_199_999, "expires in 119 minutes"),
            (7_200_000, "expires in 2 hours"),
            (5 * 86_400_000 + 86_399_999, "expires in 5 days"),
            (-3 * 86_400_000, "expired 3 days ago"),
        ] {
            assert_eq!(ends(millis), text);
        }
    }

    #[test]
    fn lengths_of_time_are_said_in_their_largest_units() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (90_061_000, "1 d 1 h"),
        ] {
            assert_eq!(apart(millis), text);
        }
    }
}
