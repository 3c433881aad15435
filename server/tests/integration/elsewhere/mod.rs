//! Work that goes on elsewhere, against stand-ins that do what real services do on bad days: lose answers after doing the
//! work, lag, fail, run twice. What counts is what stands at the far side in the end.

mod callbacks;
mod doubt;
mod flows;
mod kestra;
mod late;
mod machines;
mod secrets;
mod services;

use super::support::{Home, World};
use machines::Machines;
use std::path::Path;

/// What stands in every offering of these tests.
const HEAD: &str = "title: Machine
description: For tests.
category: Tests
version: '1'
parameters:
  type: object
  properties:
    size: { enum: [small, large], default: small }
    behaviour: { type: string, default: now }
outputs: { secret: [password] }
guard: { max_tries: 4, timeout: 60s, retry: { base: 100ms, cap: 300ms } }
";

/// The token that the far side asks for.
const TOKEN: &str = "far-side-token-7261";

/// A home whose catalog holds this one offering, and which may call this machine.
fn home(folder: &Path, offering: &str, on: fn(&[(&str, &str)]) -> Home) -> Home {
    let place = folder.join("catalog/machine");
    std::fs::create_dir_all(&place).unwrap();
    let token = folder.join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let offering = offering.replace("TOKEN_FILE", token.to_str().unwrap());
    std::fs::write(place.join("offering.yaml"), format!("{HEAD}{offering}")).unwrap();
    on(&[
        ("KEYTURN_CATALOG", folder.join("catalog").to_str().unwrap()),
        ("KEYTURN_OUTBOUND_ALLOW", "127.0.0.1"),
        ("KEYTURN_LEASE", "2s"),
    ])
}

/// A portal whose offering is made by a service, and that service.
struct Place {
    world: World,
    machines: Machines,
    _folder: tempfile::TempDir,
}

async fn place() -> Place {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let world = World::at(home(folder.path(), &Machines::offering(&base), Home::new));
    Place { world, machines, _folder: folder }
}

/// The body of a create of a machine.
fn machine(name: &str, behaviour: &str) -> serde_json::Value {
    serde_json::json!({ "offering": "machine", "name": name, "parameters": { "behaviour": behaviour } })
}

/// Everything that a request's history says.
async fn told(world: &World, id: &str) -> String {
    world.ann.get(&format!("/requests/{id}/events")).await.is(200).text()
}
