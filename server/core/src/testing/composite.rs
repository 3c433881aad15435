//! A house with an offering that is made of others.

use super::{House, Plan, eventually, offering};
use crate::{
    catalog::{Composite, Offering},
    provisioner::fake::Fake,
    store::{StepRequest, StoredResource},
};
use domain::{id::RequestId, name::Name, state::RequestState};
use serde_json::{Value, json};
use std::sync::Arc;

/// A machine that is told of its disk, and a disk for its log beside it.
pub(crate) const PAIR: &str = r#"
steps:
  - id: disk
    offering: disk
    name: "{{ name }}-disk"
    parameters: { size: "{{ parameters.size }}", count: "{{ parameters.count }}" }
  - id: machine
    offering: vm
    parameters: { note: "on {{ steps.disk.outputs.address }}", tags: ["{{ name }}", plain] }
  - id: log
    offering: disk
    name: "{{ name }}-log"
outputs:
  address: "{{ steps.machine.outputs.address }}"
  disks: ["{{ steps.disk.outputs.address }}", "{{ steps.log.outputs.address }}"]
"#;

/// An offering of these steps.
pub(crate) fn made_of(id: &str, steps: &str) -> Offering {
    let composite = Arc::new(Composite::parsed(steps));
    let nothing = Arc::new(crate::provisioner::steps::Steps);
    let plain = offering(id, nothing);
    Offering { updates: false, actions: [].into(), composite: Some(composite), ..plain }
}

/// Machines, disks and pairs of them, all by one fake.
pub(crate) fn pairs(fake: &Fake) -> Plan {
    let mut plan = Plan::of(fake.clone());
    plan.offerings.push(offering("disk", Arc::new(fake.clone())));
    plan.offerings.push(made_of("pair", PAIR));
    plan
}

/// The body of a create of a pair.
pub(crate) fn pair(name: &str) -> Value {
    json!({ "offering": "pair", "name": name, "parameters": { "size": "large", "count": 3 } })
}

impl House {
    /// Asks for a pair; its request.
    pub(crate) async fn pair(&self, name: &str) -> RequestId {
        self.send(&format!("pair-{name}"), &pair(name)).await.unwrap().request_id.unwrap()
    }

    /// What the steps of a request asked for, in words: step, action, state.
    pub(crate) async fn family(&self, id: RequestId) -> Vec<String> {
        let steps = self.store.steps_of(id).await.unwrap();
        let word = |one: &StepRequest| {
            format!("{} {} {}", one.step, one.request.view.action, one.request.view.state)
        };
        steps.iter().map(word).collect()
    }

    /// The request of a step, once there is one.
    pub(crate) async fn step(&self, id: RequestId, step: &str) -> RequestId {
        eventually(async || {
            let steps = self.store.steps_of(id).await.unwrap();
            steps.iter().rev().find(|one| one.step == step).map(|one| one.request.view.id)
        })
        .await
    }

    /// The request of a step, once that is in this state.
    pub(crate) async fn step_reaches(&self, id: RequestId, step: &str, state: RequestState) -> RequestId {
        let child = self.step(id, step).await;
        self.reaches(child, state).await;
        child
    }

    pub(crate) async fn at(&self, kind: &str, name: &str) -> Option<StoredResource> {
        self.store.resource(&Name::parse("alpha").unwrap(), kind, name).await.unwrap()
    }
}
