//! The resource has changed since the form was opened: what it was, what it is now, and what the form asks for, side by
//! side. Nothing is sent over somebody's change unseen, and nothing that was typed is lost.

use super::{driver::Driver, subject};
use domain::{
    form::shown,
    problem::{Problem, Versions},
    view::Object,
};
use leptos::prelude::*;
use std::collections::BTreeSet;

/// One parameter in its versions; nothing where it is not set.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    before: Option<String>,
    now: Option<String>,
    asked: Option<String>,
}

/// The parameters that somebody changed since `before`, or that the form `asked` to change.
fn rows(before: &Object, now: &Object, asked: &Object) -> Vec<Row> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).chain(asked.keys()).collect();
    let differs = |name: &&String| {
        let standing = before.get(*name);
        now.get(*name) != standing || asked.get(*name) != standing
    };
    let text = |object: &Object, name: &str| object.get(name).map(shown);
    let row = |name: &String| Row {
        name: name.clone(),
        before: text(before, name),
        now: text(now, name),
        asked: text(asked, name),
    };
    names.into_iter().filter(differs).map(row).collect()
}

/// The choice: look at the resource, or send the form all the same.
pub(crate) fn conflict(problem: &Problem, driver: Driver, scripted: RwSignal<bool>) -> AnyView {
    let (page, fresh) = driver.opened.with_value(|opened| {
        let on = opened.subject.on.as_ref();
        let id = driver.machine.with_untracked(|machine| machine.id().to_owned());
        (on.map(subject::Standing::path), format!("{}?after={id}", opened.subject.path()))
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
                view! {
                    <p>
                        "Nothing was changed now, and what you typed stands below. Look at what is different, then "
                        "choose: sent all the same, this form changes only what you touched in it. “Before” is when you opened it."
                    </p>
                }
                .into_any()
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
                        "Send it all the same"
                    </button>
                })}
            </div>
        </section>
    }
    .into_any()
}

fn table(versions: &Versions, driver: Driver) -> AnyView {
    let values = driver.values.get_untracked();
    let (before, asked) = driver.opened.with_value(|opened| {
        let before = subject::base(&values);
        let changes = opened.subject.deed == subject::Deed::Update;
        let asked = if changes { opened.subject.parameters(&values) } else { before.clone() };
        (before, asked)
    });
    let now = driver.opened.with_value(|opened| opened.subject.open(&versions.parameters));
    let rows = rows(&before, &now, &asked);
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
        let yours = if row.asked == row.before {
            view! { <td class="quiet">"not touched"</td> }.into_any()
        } else {
            cell(row.asked)
        };
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
                        <th scope="col">"Yours"</th>
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
    use serde_json::{Value, json};

    #[test]
    fn only_what_differs_stands_side_by_side() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let before = object(json!({"count": 1, "size": "small", "note": "x", "zone": "a"}));
        let now = object(json!({"count": 2, "size": "small", "zone": "a"}));
        let asked = object(json!({"count": 3, "size": "large", "note": "x", "zone": "a"}));
        let some = |text: &str| Some(text.to_owned());
        let row = |name: &str, before, now, asked| Row { name: name.into(), before, now, asked };
        assert_eq!(
            rows(&before, &now, &asked),
            [
                row("count", some("1"), some("2"), some("3")),
                row("note", some("x"), None, some("x")),
                row("size", some("small"), some("small"), some("large")),
            ]
        );
    }
}
