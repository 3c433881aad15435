//! The inputs of an offering's form, made from its schema.

use super::{
    outgoing::{Values, parameter_field},
    pattern::html_pattern,
};
use domain::form::{Field, FieldKind, shown};
use leptos::prelude::*;
use std::collections::BTreeMap;

/// What is wrong, by field.
pub type Misfits = BTreeMap<String, String>;

/// What an input needs to know of the form around it.
#[derive(Debug, Clone)]
pub struct Around {
    /// What it holds when the page is made.
    pub values: Values,
    /// What is wrong, by field.
    pub misfits: Signal<Misfits>,
    /// Whether nothing was typed yet, so that a box with a default stands as that says.
    pub fresh: bool,
    /// Whether an input without a value shows the default; else the form changes what stands.
    pub defaults: bool,
}

impl Around {
    /// What an input means that is left or made empty, where that is not nothing.
    fn emptied(&self, field: &Field, secret: bool) -> Option<String> {
        if self.defaults || field.kind == FieldKind::Boolean {
            return None;
        }
        if secret {
            return Some("Left empty, it stays as it is.".to_owned());
        }
        // Without a default an input that may be empty has an empty choice; with one it is that default's.
        let default = field.default.as_ref().filter(|_| !matches!(field.kind, FieldKind::Choice(_)))?;
        Some(match shown(default).as_str() {
            "" => "Emptied, the default holds.".to_owned(),
            default => format!("Emptied, the default holds: {}.", default.replace('\n', ", ")),
        })
    }
}

/// The `id` of the input of a field.
pub fn input_id(field: &str) -> String {
    format!("field-{}", field.replace(|char: char| !char.is_ascii_alphanumeric(), "-"))
}

/// A label, a hint, the message and the input, tied together for everybody.
#[component]
pub fn Labelled(
    /// The field's name.
    field: String,
    /// Its title.
    title: String,
    /// What it means.
    #[prop(optional_no_strip)]
    help: Option<String>,
    /// Whether it must be given.
    #[prop(optional)]
    required: bool,
    /// What is wrong, by field.
    misfits: Signal<Misfits>,
    /// Whether it does not apply now.
    #[prop(optional, into)]
    hidden: Signal<bool>,
    children: Children,
) -> impl IntoView {
    let id = input_id(&field);
    let message = move || misfits.with(|misfits| misfits.get(&field).cloned());
    view! {
        <div class="field" hidden=move || hidden.get()>
            <label for=id.clone()>
                {title} {(!required).then(|| view! { <span class="quiet">" (optional)"</span> })}
            </label>
            {help.map(|help| view! { <p class="hint" id=format!("{id}-help")>{help}</p> })}
            <p class="field-error" id=format!("{id}-error")>{message}</p>
            {children()}
        </div>
    }
}

/// The input of one parameter.
pub fn parameter(
    field: &Field,
    around: &Around,
    secret: bool,
    condition: Option<String>,
    hidden: Signal<bool>,
) -> AnyView {
    let name = parameter_field(&field.name);
    let misfits = around.misfits;
    let lines =
        (field.kind == FieldKind::Lines && field.help.is_none()).then(|| "One on each line.".to_owned());
    let emptied = around.emptied(field, secret);
    let help = [field.help.clone(), lines, rule(&field.kind), condition, emptied]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    let help = (!help.is_empty()).then_some(help);
    let required = field.required && field.default.is_none();
    let standing = around.values.get(&name).cloned();
    if field.kind == FieldKind::Boolean {
        let default = field.default == Some(serde_json::Value::Bool(true));
        // An unticked box is not sent, so its absence means "no" once anything was sent at all.
        let checked = if around.fresh { default } else { standing.is_some() };
        return tick(field, name, checked, help, misfits, hidden);
    }
    let text = standing
        .or_else(|| field.default.as_ref().filter(|_| around.defaults).map(shown))
        .unwrap_or_default();
    let (id, describes) = (input_id(&name), described_by(&name, help.is_some()));
    let input = input(field, name.clone(), text, required, secret, Tied { id, describes, misfits, hidden });
    view! {
        <Labelled field=name title=field.title.clone() help=help required=required misfits=misfits hidden=hidden>
            {input}
        </Labelled>
    }
    .into_any()
}

/// What ties an input to its label, hint and message.
struct Tied {
    id: String,
    describes: String,
    misfits: Signal<Misfits>,
    hidden: Signal<bool>,
}

/// The `aria-describedby` of a field's input: its message, and its hint if there is one.
#[must_use]
pub fn described_by(field: &str, help: bool) -> String {
    let id = input_id(field);
    if help { format!("{id}-error {id}-help") } else { format!("{id}-error") }
}

/// The `aria-invalid` of a field's input.
pub fn invalid(misfits: Signal<Misfits>, field: &str) -> impl Fn() -> Option<&'static str> + Clone + use<> {
    let field = field.to_owned();
    move || misfits.with(|misfits| misfits.contains_key(&field)).then_some("true")
}

fn input(field: &Field, name: String, text: String, required: bool, secret: bool, tied: Tied) -> AnyView {
    let Tied { id, describes, misfits, hidden } = tied;
    let wrong = invalid(misfits, &name);
    match &field.kind {
        FieldKind::Choice(options) => {
            let known = options.iter().any(|option| shown(option) == text);
            let options = options.iter().map(shown).map(|option| {
                let selected = option == text;
                view! { <option value=option.clone() selected=selected>{option.clone()}</option> }
            });
            // What stood there before the choice was narrowed.
            let other = (!text.is_empty() && !known).then(|| {
                view! { <option value=text.clone() selected=true>{text.clone()}</option> }
            });
            let free = field.default.is_none() && (!required || text.is_empty());
            let empty = free.then(|| view! { <option value="">"Choose"</option> });
            view! {
                <select id=id name=name required=required disabled=hidden aria-invalid=wrong aria-describedby=describes>
                    {empty} {other} {options.collect_view()}
                </select>
            }
            .into_any()
        }
        kind if takes_lines(kind, &text) && !secret => view! {
            <textarea
                id=id name=name rows="4" spellcheck="false" required=required disabled=hidden aria-invalid=wrong
                aria-describedby=describes inner_html=as_content(&text)
            ></textarea>
        }
        .into_any(),
        FieldKind::Number { whole, minimum, maximum } => {
            let step = if *whole { "1" } else { "any" };
            let bound = |bound: &Option<f64>| bound.map(|bound| bound.to_string());
            view! {
                <input
                    type="number" id=id name=name value=text step=step min=bound(minimum) max=bound(maximum)
                    required=required disabled=hidden aria-invalid=wrong aria-describedby=describes
                />
            }
            .into_any()
        }
        FieldKind::Text { min_length, max_length, pattern } => {
            let pattern = html_pattern(pattern.as_deref(), *min_length, *max_length);
            view! {
                <input
                    type=if secret { "password" } else { "text" } id=id name=name value=text pattern=pattern
                    autocomplete=secret.then_some("new-password") spellcheck="false" required=required
                    disabled=hidden aria-invalid=wrong aria-describedby=describes
                />
            }
            .into_any()
        }
        FieldKind::Boolean | FieldKind::Lines | FieldKind::Json => ().into_any(),
    }
}

/// The most characters that are written on one line.
const LINE: u64 = 200;

/// Whether an input of this kind that holds this text has several lines.
fn takes_lines(kind: &FieldKind, text: &str) -> bool {
    match kind {
        FieldKind::Lines | FieldKind::Json => true,
        FieldKind::Text { max_length, pattern, .. } => {
            text.contains('\n') || (pattern.is_none() && max_length.is_some_and(|most| most > LINE))
        }
        FieldKind::Number { .. } | FieldKind::Boolean | FieldKind::Choice(_) => false,
    }
}

fn tick(
    field: &Field,
    name: String,
    checked: bool,
    help: Option<String>,
    misfits: Signal<Misfits>,
    hidden: Signal<bool>,
) -> AnyView {
    let id = input_id(&name);
    let (wrong, describes) = (invalid(misfits, &name), described_by(&name, help.is_some()));
    let message = {
        let name = name.clone();
        move || misfits.with(|misfits| misfits.get(&name).cloned())
    };
    view! {
        <div class="field" hidden=move || hidden.get()>
            <div class="tick">
                <input
                    type="checkbox" id=id.clone() name=name value="true" checked=checked disabled=hidden
                    aria-invalid=wrong aria-describedby=describes
                />
                <label for=id.clone()>{field.title.clone()}</label>
            </div>
            {help.map(|help| view! { <p class="hint" id=format!("{id}-help")>{help}</p> })}
            <p class="field-error" id=format!("{id}-error")>{message}</p>
        </div>
    }
    .into_any()
}

/// A text as the content of a `textarea`. Not a text node: an empty one would come out as a blank.
#[must_use]
pub fn as_content(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    // The first line break after the tag is not part of the content.
    if escaped.starts_with(['\n', '\r']) { format!("\n{escaped}") } else { escaped }
}

/// The rule of an input in words, and what can be chosen, for where it is written as text.
#[must_use]
pub fn rule_or_choices(kind: &FieldKind) -> Option<String> {
    match kind {
        FieldKind::Choice(options) => {
            Some(format!("One of {}.", options.iter().map(shown).collect::<Vec<_>>().join(", ")))
        }
        FieldKind::Boolean => Some("true or false.".to_owned()),
        kind => rule(kind),
    }
}

/// The rule of an input in words, where its looks do not tell it.
fn rule(kind: &FieldKind) -> Option<String> {
    match kind {
        FieldKind::Number { minimum: Some(least), maximum: Some(most), .. } => {
            Some(format!("From {least} to {most}."))
        }
        FieldKind::Number { minimum: Some(least), .. } => Some(format!("At least {least}.")),
        FieldKind::Number { maximum: Some(most), .. } => Some(format!("At most {most}.")),
        FieldKind::Text { max_length: Some(most), .. } => Some(format!("At most {most} characters.")),
        FieldKind::Json => Some("Written as JSON.".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::form::fields;
    use serde_json::json;

    fn field(property: serde_json::Value) -> Field {
        fields(&json!({"properties": {"x": property}})).remove(0)
    }

    #[test]
    fn a_long_text_and_one_of_several_lines_are_not_squeezed_into_one() {
        for (property, text, lines) in [
            (json!({"type": "string", "maxLength": 201}), "", true),
            (json!({"type": "string", "maxLength": 200}), "", false),
            (json!({"type": "string", "maxLength": 500, "pattern": "^a"}), "", false),
            (json!({"type": "string", "maxLength": 20}), "two\nlines", true),
            (json!({"type": "integer"}), "1", false),
        ] {
            assert_eq!(takes_lines(&field(property.clone()).kind, text), lines, "{property} {text:?}");
        }
    }

    #[test]
    fn a_change_says_what_an_empty_field_means() {
        let owner = Owner::new();
        owner.set();
        let around = |defaults| {
            let misfits = Signal::stored(Misfits::new());
            Around { values: Values::new(), misfits, fresh: false, defaults }
        };
        let (number, choice) =
            (json!({"type": "integer", "default": 3}), json!({"enum": ["a"], "default": "a"}));
        let says = |property: &serde_json::Value, secret, defaults| {
            around(defaults).emptied(&field(property.clone()), secret)
        };
        assert_eq!(says(&number, false, false).as_deref(), Some("Emptied, the default holds: 3."));
        assert_eq!(
            says(&json!({"type": "string"}), true, false).as_deref(),
            Some("Left empty, it stays as it is.")
        );
        for (property, secret, defaults) in
            [(&number, false, true), (&choice, false, false), (&number, true, true)]
        {
            assert_eq!(says(property, secret, defaults), None, "{property}");
        }
    }
}
