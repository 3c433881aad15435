//! The resource has changed since the form was opened: what it was, what it is now, and what the form asks for, side by
//! side. Nothing is sent over somebody's change unseen, and nothing that was typed is lost. Of a secret is told only
//! whether there is one and whether it was changed.

use super::{
    driver::Driver,
    outgoing,
    subject::{self, Deed, Subject},
};
use domain::{
    form::shown,
    problem::{Problem, Versions},
    view::Object,
};
use leptos::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// One parameter in its versions; nothing where it is not set.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    before: Option<String>,
    now: Option<String>,
    asked: Option<String>,
}

/// How much is known of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// All of it.
    Openly,
    /// Whether it is set, and whether it was changed.
    ByItsMark,
    /// Nothing.
    Hidden,
}

impl Known {
    fn of(subject: &Subject, parameter: &str) -> Self {
        if outgoing::is_write_only(&subject.offering.parameters, parameter) {
            Self::ByItsMark
        } else if subject.is_secret(parameter) {
            Self::Hidden
        } else {
            Self::Openly
        }
    }

    /// What is shown of a value.
    fn told(self, value: Option<&Value>) -> Option<String> {
        match (self, value) {
            (Self::Openly, value) => value.map(shown),
            (Self::ByItsMark, None) => None,
            (Self::ByItsMark, Some(_)) | (Self::Hidden, _) => Some("secret".to_owned()),
        }
    }
}

/// The parameters that somebody changed since `before`, or that the form `asked` to change; of secrets those of which the
/// form holds a `new` one.
fn rows(
    before: &Object,
    now: &Object,
    asked: &Object,
    known: impl Fn(&str) -> Known,
    new: &BTreeSet<String>,
) -> Vec<Row> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).chain(asked.keys()).chain(new).collect();
    let rows = names.into_iter().filter_map(|name| {
        let (standing, current) = (before.get(name), now.get(name));
        let (changed, known) = (current != standing, known(name));
        let touched = if known == Known::Openly { asked.get(name) != standing } else { new.contains(name) };
        let told = known.told(standing);
        (changed || touched).then(|| Row {
            name: name.clone(),
            now: match (known, standing, current) {
                (Known::ByItsMark, Some(_), Some(_)) if changed => Some("secret, changed since".to_owned()),
                _ => known.told(current),
            },
            asked: match known {
                Known::Openly => asked.get(name).map(shown),
                _ if touched => Some("a new one".to_owned()),
                _ => told.clone(),
            },
            before: told,
        })
    });
    rows.collect()
}

/// What the person may do about it, and what the button says that does it all the same.
fn choice(deed: &Deed) -> (&'static str, &'static str) {
    match deed {
        Deed::Delete => (
            "Nothing was deleted. Look at what changed, then delete it all the same or leave it.",
            "Delete all the same",
        ),
        Deed::Act(_) => (
            "Nothing was done. Look at what changed, then do it all the same or leave it.",
            "Do it all the same",
        ),
        Deed::Create | Deed::Update => (
            "Nothing was changed now, and what you typed stands below. Look at what is different, then choose: sent all the \
             same, this form changes only what you touched in it.",
            "Send it all the same",
        ),
    }
}

/// What the button says that sends the form although the resource has changed.
pub(crate) fn all_the_same(deed: &Deed) -> &'static str {
    choice(deed).1
}

/// The choice: look at the resource, or send the form all the same.
pub(crate) fn conflict(problem: &Problem, driver: Driver, scripted: RwSignal<bool>) -> AnyView {
    let (page, fresh, (what, button)) = driver.opened.with_value(|opened| {
        let on = opened.subject.on.as_ref();
        let id = driver.machine.with_untracked(|machine| machine.id().to_owned());
        let fresh = format!("{}?after={id}", opened.subject.path());
        (on.map(subject::Standing::path), fresh, choice(&opened.subject.deed))
    });
    let versions = problem.versions.clone();
    let another = versions.as_ref().is_some_and(|versions| !versions.one_life());
    let may_go_on = versions.as_ref().is_some_and(|versions| versions.one_life());
    view! {
        <section class="note caution" aria-labelledby="conflict-title">
            <h2 id="conflict-title">{problem.title.clone()}</h2>
            {if another {
                view! { <p>"Another resource has this name by now. Nothing was changed."</p> }.into_any()
            } else {
                view! { <p>{what} " “Before” is when you opened it."</p> }.into_any()
            }}
            {versions.map(|versions| table(&versions, driver))}
            <div class="actions">
                {page.map(|page| view! { <a href=page rel="external">"Open the resource"</a> })}
                <a href=fresh rel="external">"Start again from what it is now"</a>
                {move || (scripted.get() && may_go_on).then(|| view! {
                    <button
                        type="button" disabled=move || !driver.machine.read().is_ready()
                        on:click=move |_| driver.submit_on_top()
                    >
                        {button}
                    </button>
                })}
            </div>
        </section>
    }
    .into_any()
}

fn table(versions: &Versions, driver: Driver) -> AnyView {
    let values = driver.values.get_untracked();
    let lost = driver.lost.get_untracked();
    let (rows, changes) = driver.opened.with_value(|opened| {
        let subject = &opened.subject;
        let before = subject::base(&values);
        let changes = subject.deed == Deed::Update;
        let asked = if changes { subject.parameters(&values) } else { before.clone() };
        let typed = asked.keys().filter(|name| changes && subject.is_secret(name)).cloned();
        // What was typed and got lost is wanted all the same.
        let lost = lost.iter().filter_map(|field| field.strip_prefix("p.")).map(str::to_owned);
        let new = typed.chain(lost.filter(|_| changes)).collect();
        let now = subject.open(&versions.parameters);
        (rows(&before, &now, &asked, |name| Known::of(subject, name), &new), changes)
    });
    if rows.is_empty() {
        return view! { <p>"Its parameters are the same; it was changed and changed back, or something was done with it."</p> }
            .into_any();
    }
    let cell = |text: Option<String>| match text {
        Some(text) => view! { <td>{text}</td> }.into_any(),
        None => view! { <td class="quiet">"not set"</td> }.into_any(),
    };
    let rows = rows.into_iter().map(|row| {
        // Of the resource's own, also where the form has a parameter of the same name.
        let title = driver.opened.with_value(|opened| opened.subject.title_on(&row.name));
        let yours = changes.then(|| {
            if row.asked == row.before {
                view! { <td class="quiet">"not touched"</td> }.into_any()
            } else {
                cell(row.asked)
            }
        });
        view! { <tr><th scope="row">{title}</th> {cell(row.before)} {cell(row.now)} {yours}</tr> }
    });
    let rows = rows.collect_view();
    view! {
        <div class="table" tabindex="0" role="group" aria-label="What is different">
            <table>
                <thead>
                    <tr>
                        <th scope="col">"Parameter"</th>
                        <th scope="col">"Before"</th>
                        <th scope="col">"Now"</th>
                        {changes.then(|| view! { <th scope="col">"Yours"</th> })}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::hidden::mark;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    fn row(name: &str, before: Option<&str>, now: Option<&str>, asked: Option<&str>) -> Row {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Row { name: name.into(), before: text(before), now: text(now), asked: text(asked) }
    }

    #[test]
    fn only_what_differs_stands_side_by_side() {
        let before = object(json!({"count": 1, "size": "small", "note": "x", "zone": "a"}));
        let now = object(json!({"count": 2, "size": "small", "zone": "a"}));
        let asked = object(json!({"count": 3, "size": "large", "note": "x", "zone": "a"}));
        assert_eq!(
            rows(&before, &now, &asked, |_| Known::Openly, &BTreeSet::new()),
            [
                row("count", Some("1"), Some("2"), Some("3")),
                row("note", Some("x"), None, Some("x")),
                row("size", Some("small"), Some("small"), Some("large")),
            ]
        );
    }

    #[test]
    fn of_a_secret_is_told_whether_it_was_changed_and_never_what_it_is() {
        let (old, new) = (mark(&[1; 32]), mark(&[2; 32]));
        let before = object(json!({"changed": old, "kept": old, "taken": old, "typed": old}));
        let now = object(json!({"changed": new, "kept": old, "typed": old}));
        let asked = object(json!({"typed": "hush hush", "first": "hush", "unmarked": "hush"}));
        let known = |name: &str| if name == "unmarked" { Known::Hidden } else { Known::ByItsMark };
        let typed = ["typed", "first", "unmarked"].map(str::to_owned).into();
        let (secret, new) = (Some("secret"), Some("a new one"));
        assert_eq!(
            rows(&before, &now, &asked, known, &typed),
            [
                row("changed", secret, Some("secret, changed since"), secret),
                row("first", None, None, new),
                row("taken", secret, None, secret),
                row("typed", secret, secret, new),
                row("unmarked", secret, secret, new),
            ]
        );
    }
}
