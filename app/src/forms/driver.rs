//! Carries out in the browser what `machine` decides.

use super::{
    browser,
    fields::input_id,
    kept::{Kept, place},
    machine::{Effect, Event, Machine},
    outgoing::Values,
    subject::{Call, ETAG, Subject, confirmation},
};
use leptos::{ev, html, prelude::*, task::spawn_local};
use std::collections::BTreeSet;
use wasm_bindgen::JsCast;
use web_sys::{HtmlElement, HtmlFormElement, HtmlInputElement, HtmlSelectElement, HtmlTextAreaElement};

/// What does not change while a form is open.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    /// What it is about.
    pub(crate) subject: Subject,
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
    pub(crate) opened: StoredValue<Opened>,
    pub(crate) machine: RwSignal<Machine>,
    /// What is typed.
    pub(crate) values: RwSignal<Values>,
    /// The fields with a secret that was typed and is not kept.
    pub(crate) lost: RwSignal<BTreeSet<String>>,
    pub(crate) form: NodeRef<html::Form>,
    pub(crate) summary: NodeRef<html::Div>,
    /// What the tries send, as it was when the person asked.
    sending: StoredValue<Call>,
}

impl Driver {
    pub(crate) fn new(opened: Opened, machine: Machine, values: Values, lost: BTreeSet<String>) -> Self {
        Self {
            opened: StoredValue::new(opened),
            machine: RwSignal::new(machine),
            values: RwSignal::new(values),
            lost: RwSignal::new(lost),
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
        self.checked(Event::Submit { now: browser::now() });
    }

    /// The person chose to send the form as something new.
    pub(crate) fn submit_as_new(self) {
        self.checked(Event::AsNew { id: browser::fresh_id(), now: browser::now() });
    }

    /// The person chose to request it although it looks like a duplicate.
    pub(crate) fn submit_anyway(self, reason: String) {
        self.checked(Event::Anyway { reason, now: browser::now() });
    }

    /// The person chose to send it although the resource has changed meanwhile.
    pub(crate) fn submit_on_top(self) {
        self.checked(Event::OnTop { now: browser::now() });
    }

    /// Something was typed.
    pub(crate) fn typed(self) {
        self.read();
        self.find();
        self.keep();
    }

    /// Goes on with what was pressed, unless what is typed cannot be sent: then the fields say so.
    fn checked(self, pressed: Event) {
        self.read();
        let values = self.values.get_untracked();
        self.dispatch(match self.opened.with_value(|opened| opened.subject.body(&values)) {
            Ok(_) => pressed,
            Err(problem) => Event::Unfit { problem },
        });
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
            Effect::TakeVersion { etag } => {
                if let Some(Some(form)) = self.form.try_get_untracked()
                    && let Some(input) = hidden(&form, ETAG)
                {
                    input.set_value(&etag);
                }
            }
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
        let Some(call) = self.sending.try_get_value() else {
            return;
        };
        let Some(id) = self.machine.try_with_untracked(|machine| machine.id().to_owned()) else {
            return;
        };
        let user = self.opened.with_value(|opened| opened.user.clone());
        spawn_local(async move {
            let reply = browser::send(call, &user, &id).await;
            self.dispatch(Event::Answered { turn, reply, now: browser::now(), random: browser::random() });
        });
    }

    fn take_values(self) {
        self.read();
        let values = self.values.get_untracked();
        let confirmed = self.machine.with_untracked(|machine| {
            machine.confirmation().map(|confirmed| confirmation(&confirmed.of, &confirmed.reason))
        });
        // What does not fit was told before; a try of it would only be refused.
        let call = self.opened.with_value(|opened| opened.subject.call(&values, confirmed));
        self.sending.set_value(call.unwrap_or_default());
    }

    /// What is typed again is not lost any more.
    fn find(self) {
        let found = self.values.with_untracked(|values| {
            let there = |field: &&String| values.get(*field).is_some_and(|text| !text.is_empty());
            self.lost.with_untracked(|lost| lost.iter().filter(there).cloned().collect::<Vec<_>>())
        });
        if !found.is_empty() {
            self.lost.update(|lost| lost.retain(|field| !found.contains(field)));
        }
    }

    fn read(self) {
        if let Some(Some(form)) = self.form.try_get_untracked() {
            self.values.set(browser::typed(&form));
        }
    }

    fn keep(self) {
        self.opened.with_value(|opened| {
            self.machine.with_untracked(|machine| {
                let kept = self.values.with_untracked(|values| {
                    self.lost
                        .with_untracked(|lost| Kept::of(machine, &opened.subject, &opened.user, values, lost))
                });
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
        self.opened.with_value(|opened| opened.subject.path())
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
        let opened = self.opened.get_value();
        if opened.brought_back {
            self.take_id();
            self.read();
            self.keep();
        } else {
            let read = |id: &str| {
                browser::recall(&place(id)).and_then(|text| Kept::read(&text, &opened.subject, &opened.user))
            };
            let resumed = browser::query("resume").filter(|id| read(id).is_some());
            let id = browser::id_of_entry(&path)
                .or(resumed)
                .or_else(|| hidden(&form, "request_id").map(|input| input.value()));
            let id = id.unwrap_or_else(browser::fresh_id);
            let kept = read(&id);
            if let Some(kept) = &kept {
                restore(&form, &kept.values);
                self.lost.set(kept.secrets.clone());
            }
            let (sent, request) = kept.map_or((false, None), |kept| (kept.sent, kept.request));
            self.machine.set(Machine::open(id, sent, request));
            self.take_id();
        }
        self.read();
        self.find();
    }

    fn take_id(self) {
        let Some(id) = self.machine.try_with_untracked(|machine| machine.id().to_owned()) else {
            return;
        };
        if let Some(Some(form)) = self.form.try_get_untracked()
            && let Some(input) = hidden(&form, "request_id")
        {
            input.set_value(&id);
        }
        browser::set_id_of_entry(&self.path(), &id);
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

fn hidden(form: &HtmlFormElement, field: &str) -> Option<HtmlInputElement> {
    form.elements().named_item(field)?.dyn_into().ok()
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
