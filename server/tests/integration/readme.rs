//! What the README shows works as it stands there.

use crate::{
    hooks::{HOOKS, owner},
    support::{Home, World, fresh},
};
use serde_json::{Value, json};
use std::path::Path;

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap()
}

#[tokio::test]
async fn its_hook_is_taken_in_and_knows_its_own_sample_and_an_event_of_an_organisation() {
    let readme = readme();
    let (_, after) = readme.split_once("```json\n").unwrap();
    let hook: Value = serde_json::from_str(after.split_once("```").unwrap().0).unwrap();
    let world = World::at(Home::new(&[("KEYTURN_CATALOG", concat!(env!("CARGO_MANIFEST_DIR"), "/catalog"))]));
    let owner = owner(&world);
    let made = owner.post(HOOKS, &fresh("hook"), &hook).await.is(201).json();
    let test = format!("{HOOKS}/{}/test", made["id"].as_str().unwrap());
    for (organisation, label) in [(None, "none"), (Some("acme"), "acme")] {
        let mut sample = hook["sample"].clone();
        if let Some(login) = organisation {
            sample["payload"]["organization"] = json!({ "login": login });
        }
        let came = owner.post(&test, &fresh("test"), &sample).await.is(200).json();
        assert!(came.to_string().contains(&format!("\"org\":\"{label}\"")), "{came}");
    }
}

#[test]
fn its_offering_is_one_that_the_check_finds_no_mistake_in() {
    let readme = readme();
    let (_, after) = readme.split_once("    title: Virtual machine\n").unwrap();
    let lines = after.lines().take_while(|line| line.starts_with("    ")).map(|line| &line[4..]);
    let offering = format!("title: Virtual machine\n{}\n", lines.collect::<Vec<_>>().join("\n"));
    let home = Home::new(&[]);
    let folder = home.path().join("catalog/machine");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("offering.yaml"), offering).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/catalog/vm/provision");
    std::fs::copy(program, folder.join("provision")).unwrap();
    assert!(home.must(&["catalog", "check", "catalog"], "").contains("machine"));
}
