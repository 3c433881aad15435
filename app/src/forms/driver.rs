//! Carries out in the browser what `machine` decides.

use super::{
    browser,
    fields::input_id,
    kept::{Kept, place},
    machine::{Effect, Event, Machine},
    outgoing::{self, Values},
};
use domain::{
    problem::{FieldError, Problem, ProblemKind},
    view::OfferingView,
};
use leptos::{ev, html, prelude::*, task::spawn_local};
use serde_json::{Value, json};
use wasm_bindgen::JsCast;
use web_sys::{HtmlElement, HtmlFormElement, HtmlInputElement, HtmlSelectElement, HtmlTextAreaElement};

/// What a form is about and does not change while it is open.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// What is requested.
    pub(crate) offering: OfferingView,
    /// Who fills it in.
    pub(crate) user: String,
    /// An ID for sending it as something new, made with the page.
    pub(crate) fresh_id: String,
    /// Whether the page came with what was typed, after a refusal without script.
    pub(crate) brought_back: bool,
}

/// One opened form in a browser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driver {
    pub(crate) subject: StoredValue<Subject>,
    pub(crate) machine: RwSignal<Machine>,
    /// What is typed.
    pub(crate) values: RwSignal<Values>,
    pub(crate) form: NodeRef<html::Form>,
    pub(crate) summary: NodeRef<html::Div>,
    /// What the tries send: the team and the body, as they were when the person asked.
    sending: StoredValue<(String, String)>,
}

impl Driver {
    pub(crate) fn new(subject: Subject, machine: Machine, values: Values) -> Self {
        Self {
            subject: StoredValue::new(subject),
            machine: RwSignal::new(machine),
            values: RwSignal::new(values),
            form: NodeRef::new(),
            summary: NodeRef::new(),
            sending: StoredValue::default(),
        }
    }

    /// Takes the page over: finds the form's ID and what was typed before, and listens for the page coming back.
    pub(crate) fn take_over(self) {
        self.settle();
        let shown_again = window_event_listener(ev::pageshow, move |event| {
            if event.persisted() {
                self.dispatch(Event::ShownAgain);
            }
        });
        // A jump inside the page makes a history entry of its own.
        let jumped = window_event_listener(ev::hashchange, move |_| self.take_id());
        on_cleanup(move || {
            shown_again.remove();
            jumped.remove();
        });
    }

    /// The person pressed the button, or Enter.
    pub(crate) fn submit(self) {
        self.read();
        let values = self.values.get_untracked();
        match self.subject.with_value(|subject| outgoing::body(&subject.offering, &values)) {
            Ok(_) => self.dispatch(Event::Submit { now: browser::now() }),
            Err(errors) => self.dispatch(Event::Unfit { problem: unfit(errors) }),
        }
    }

    /// The person chose to send the form as something new.
    pub(crate) fn submit_as_new(self) {
        self.dispatch(Event::AsNew { id: browser::fresh_id(), now: browser::now() });
    }

    /// The person chose to request it although it looks like a duplicate.
    pub(crate) fn submit_anyway(self, reason: String) {
        self.dispatch(Event::Anyway { reason, now: browser::now() });
    }

    /// Something was typed.
    pub(crate) fn typed(self) {
        self.read();
        self.keep();
    }

    fn dispatch(self, event: Event) {
        // Gone with the page if the page is gone.
        let effects = self.machine.try_update(|machine| machine.on(event)).unwrap_or_default();
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(self, effect: Effect) {
        match effect {
            Effect::Keep => self.keep(),
            Effect::TakeValues => self.take_values(),
            Effect::Send { turn } => self.send(turn),
            Effect::Wait { turn, time } => set_timeout(move || self.dispatch(Event::WaitOver { turn }), time),
            Effect::TakeId => self.take_id(),
            Effect::Focus => request_animation_frame(move || {
                if let Some(Some(summary)) = self.summary.try_get_untracked() {
                    focus(&summary);
                }
            }),
            Effect::Open { address } => browser::leave_for(&address),
            Effect::LogIn => self.log_in(),
        }
    }

    fn send(self, turn: u32) {
        let Some((team, body)) = self.sending.try_get_value() else {
            return;
        };
        let Some(id) = self.machine.try_with_untracked(|machine| machine.id().to_owned()) else {
            return;
        };
        let user = self.subject.with_value(|subject| subject.user.clone());
        spawn_local(async move {
            let address = format!("/api/v1/teams/{}/requests", crate::address::encode(&team));
            let reply = browser::send(&address, &user, &id, body).await;
            self.dispatch(Event::Answered { turn, reply, now: browser::now(), random: browser::random() });
        });
    }

    fn take_values(self) {
        self.read();
        let values = self.values.get_untracked();
        let team = values.get("team").cloned().unwrap_or_default();
        let body = self.subject.with_value(|subject| outgoing::body(&subject.offering, &values));
        let mut body = body.unwrap_or_default();
        self.machine.with_untracked(|machine| {
            if let Some(confirmed) = machine.confirmation() {
                body.insert(
                    "confirm_duplicate".into(),
                    json!({"of": confirmed.of, "reason": confirmed.reason}),
                );
            }
        });
        self.sending.set_value((team, Value::Object(body).to_string()));
    }

    fn read(self) {
        if let Some(Some(form)) = self.form.try_get_untracked() {
            self.values.set(browser::typed(&form));
        }
    }

    fn keep(self) {
        self.subject.with_value(|subject| {
            self.machine.with_untracked(|machine| {
                let kept = self
                    .values
                    .with_untracked(|values| Kept::of(machine, &subject.offering, &subject.user, values));
                if let Ok(text) = serde_json::to_string(&kept) {
                    browser::keep(&place(machine.id()), &text);
                }
            });
        });
    }

    fn log_in(self) {
        let id = self.machine.with_untracked(|machine| machine.id().to_owned());
        let next = format!("{}?resume={id}", self.path());
        browser::leave_for(&crate::address::login(&next));
    }

    fn path(self) -> String {
        self.subject.with_value(|subject| format!("/offerings/{}/new", subject.offering.id))
    }

    /// Finds the form's ID once the address bar shows this form: the router changes it after the page is made.
    fn settle(self) {
        let Some(form) = self.form.try_get_untracked() else {
            return;
        };
        let path = self.path();
        let (Some(form), true) = (form, browser::path() == path) else {
            request_animation_frame(move || self.settle());
            return;
        };
        let subject = self.subject.get_value();
        if subject.brought_back {
            self.take_id();
            self.read();
            self.keep();
        } else {
            let read = |id: &str| {
                browser::recall(&place(id))
                    .and_then(|text| Kept::read(&text, &subject.offering, &subject.user))
            };
            let resumed = browser::query("resume").filter(|id| read(id).is_some());
            let id = browser::id_of_entry(&path)
                .or(resumed)
                .or_else(|| hidden_id(&form).map(|input| input.value()));
            let id = id.unwrap_or_else(browser::fresh_id);
            let kept = read(&id);
            if let Some(kept) = &kept {
                restore(&form, &kept.values);
            }
            let (sent, request) = kept.map_or((false, None), |kept| (kept.sent, kept.request));
            self.machine.set(Machine::open(id, sent, request));
            self.take_id();
        }
        self.read();
    }

    fn take_id(self) {
        let Some(id) = self.machine.try_with_untracked(|machine| machine.id().to_owned()) else {
            return;
        };
        if let Some(Some(form)) = self.form.try_get_untracked()
            && let Some(input) = hidden_id(&form)
        {
            input.set_value(&id);
        }
        browser::set_id_of_entry(&self.path(), &id);
    }
}

fn unfit(errors: Vec<FieldError>) -> Problem {
    let kind = ProblemKind::InvalidParameters;
    Problem {
        kind: format!("/problems/{}", kind.slug()),
        title: kind.title().to_owned(),
        status: 422,
        detail: "Nothing was sent. Correct what is marked.".to_owned(),
        errors,
        differs: Vec::new(),
        request: None,
        versions: None,
        earlier: None,
    }
}

/// Moves to a field.
pub(crate) fn focus_field(field: &str) {
    if let Some(input) = document().get_element_by_id(&input_id(field)) {
        focus(&input);
    }
}

fn focus(element: &web_sys::Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.focus();
    }
}

fn hidden_id(form: &HtmlFormElement) -> Option<HtmlInputElement> {
    form.elements().named_item("request_id")?.dyn_into().ok()
}

/// Puts kept values back, except where something else was typed since the page came.
fn restore(form: &HtmlFormElement, kept: &Values) {
    let elements = form.elements();
    for place in 0..elements.length() {
        let Some(element) = elements.item(place) else {
            continue;
        };
        let Some(name) = element.get_attribute("name") else {
            continue;
        };
        let text = kept.get(&name);
        if let Some(input) = element.dyn_ref::<HtmlInputElement>() {
            if input.type_() == "checkbox" {
                if input.checked() == input.default_checked() {
                    input.set_checked(text.is_some());
                }
            } else if let Some(text) = text
                && input.value() == input.default_value()
            {
                input.set_value(text);
            }
        } else if let (Some(area), Some(text)) = (element.dyn_ref::<HtmlTextAreaElement>(), text) {
            if area.default_value().is_ok_and(|default| area.value() == default) {
                area.set_value(text);
            }
        } else if let (Some(select), Some(text)) = (element.dyn_ref::<HtmlSelectElement>(), text) {
            select.set_value(text);
        }
    }
}
