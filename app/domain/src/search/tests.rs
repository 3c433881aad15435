use super::*;
use proptest::prelude::*;

fn read(query: &str) -> Result<Search, SearchError> {
    Search::read_query(query)
}

fn one(query: &str) -> (Field, Operator, Values) {
    let search = read(query).unwrap();
    let filter = search.filters().next().unwrap();
    (filter.field, filter.operator, filter.values.clone())
}

#[test]
fn everything_is_found_fifty_a_page_when_nothing_is_asked() {
    let search = read("").unwrap();
    assert_eq!((search.size(), search.cursor(), search.finds_all()), (50, None, true));
    assert_eq!(search.query(), "");
}

#[test]
fn states_are_read_in_our_words_and_kestras_in_any_case() {
    let filter = |query: &str| read(query).unwrap().filters().next().unwrap().states();
    assert_eq!(
        filter("filters[state][IN]=SUCCESS, failed,Paused"),
        [RequestState::PendingApproval, RequestState::Succeeded, RequestState::Failed]
    );
    assert_eq!(filter("filters[state][EQUALS]=KILLED"), [RequestState::Canceled]);
    assert_eq!(filter("filters[state][NOT_IN]=success").len(), 7);
    assert_eq!(filter("filters[state][STARTS_WITH]=RE"), [RequestState::Rejected]);
    assert_eq!(filter("filters[state][CONTAINS]=%25").len(), 0);
    // A part of a word of Kestra's finds the state as well: nothing found would read as "it never was".
    for (word, state) in [
        ("SUCCESS", RequestState::Succeeded),
        ("Paus", RequestState::PendingApproval),
        ("CREATED", RequestState::Queued),
        ("killed", RequestState::Canceled),
        ("Cancelled", RequestState::Canceled),
    ] {
        for operator in [Operator::StartsWith, Operator::Contains] {
            assert_eq!(filter(&format!("{}={word}", Field::State.compared(operator))), [state], "{word}");
        }
    }
    for operator in [Operator::GreaterThanOrEqualTo, Operator::LessThan] {
        let name = Field::State.compared(operator);
        assert_eq!(filter(&format!("{name}=SUCCESS")), filter(&format!("{name}=succeeded")), "{name}");
    }
}

#[test]
fn what_is_no_text_is_refused_and_never_changed_into_another() {
    for bad in ["filters[name][EQUALS]=%ff", "%ff=x", "q=a&filters[labels][EQUALS][a]=x%C3", "q=%ed%a0%80"] {
        assert_eq!(read(bad).unwrap_err().rule, NOT_UTF8, "{bad}");
    }
    assert_eq!(read("q=%C3%A4%").unwrap().text(), Some("ä%"));
    assert_eq!(read("q=\u{e4}%zz").unwrap().text(), Some("\u{e4}%zz"));
}

#[test]
fn the_one_call_of_a_script_is_understood() {
    let search = read(
        "filters[labels][EQUALS][system.correlationId]=payment-ORD-123&filters[offering][EQUALS]=vm\
         &filters[action][EQUALS]=create&filters[state][IN]=SUCCESS&size=1",
    )
    .unwrap();
    assert_eq!(search.labels()[CORRELATION_LABEL], "payment-ORD-123");
    assert_eq!((search.size(), search.filters().count()), (1, 3));
}

#[test]
fn a_comma_in_a_listed_value_stands_in_quotation_marks_and_a_backslash_is_a_character() {
    let texts = |query: &str| match one(query).2 {
        Values::Texts(texts) => texts,
        other => panic!("{other:?}"),
    };
    assert_eq!(texts("filters[requested_by][IN]=a,b%20c"), ["a", "b c"]);
    assert_eq!(texts("filters[requested_by][IN]=%22a,b%22,c"), ["a,b", "c"]);
    assert_eq!(texts("filters[requested_by][IN]=%22say %22%22hi%22%22%22"), ["say \"hi\""]);
    assert_eq!(texts("filters[requested_by][IN]=a\\,b"), ["a\\", "b"]);
    assert_eq!(texts("filters[requested_by][EQUALS]=%22a,b"), ["\"a,b"]);
    for bad in ["%22a", "%22a%22b", "a,,b", ",", ""] {
        assert!(read(&format!("filters[name][IN]={bad}")).is_err(), "{bad}");
    }
}

#[test]
fn times_are_moments_whatever_their_offset_and_finer_ones_never_let_an_earlier_row_in() {
    let moment = |query: &str| match one(query).2 {
        Values::Moments(moments) => moments[0].to_string(),
        other => panic!("{other:?}"),
    };
    let name = "filters[created_at][GREATER_THAN_OR_EQUAL_TO]";
    assert_eq!(moment(&format!("{name}=2026-03-29T02:30:00%2B14:00")), "2026-03-28T12:30:00.000Z");
    assert_eq!(moment(&format!("{name}=2026-01-01T00:00:00.0001Z")), "2026-01-01T00:00:00.001Z");
    assert_eq!(moment(&format!("{name}=9999-12-31T23:59:59.9999Z")), "9999-12-31T23:59:59.999Z");
    assert_eq!(moment("filters[finished_at][LESS_THAN]=2026-01-01T00:00:00Z"), "2026-01-01T00:00:00.000Z");
    assert_eq!(moment("filters[finished_at][EQUALS]=2026-01-01T00:00:00.0009Z"), "2026-01-01T00:00:00.000Z");
    for bad in ["yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00+01:00", "1"] {
        let error = read(&format!("{name}={bad}")).unwrap_err();
        assert!(error.rule.contains("RFC 3339"), "{bad}: {error}");
    }
    assert!(read("filters[created_at][CONTAINS]=2026").is_err());
}

#[test]
fn what_is_not_understood_is_refused_by_its_name() {
    for bad in [
        "sort=name",
        "filters=x",
        "filters[name]=x",
        "filters[colour][EQUALS]=red",
        "filters[name][LIKE]=x",
        "filters[name][equals]=x",
        "filters[name][EQUALS][x]=x",
        "filters[state][EQUALS]=done",
        "filters[state][EQUALS]=failed,succeeded",
        "filters[channel][EQUALS]=pigeon",
        "filters[parent_id][EQUALS]=1",
        "filters[name][EQUALS]=",
        "filters[name][EQUALS]=a&filters[name][EQUALS]=b",
        "filters[labels][EQUALS]=x",
        "filters[labels][IN][env]=x",
        "filters[labels][EQUALS][]=x",
        "filters[labels][EQUALS][Env]=x",
        "filters[labels][EQUALS][system.owner]=x",
        "filters[labels][EQUALS][a]=1&filters[labels][EQUALS][a]=1",
        "filters[parameters][EQUALS][]=x",
        "filters[parameters][CONTAINS][a]=x",
        "q=",
        "q=a&q=b",
        "size=0",
        "size=1001",
        "size=-1",
        "size=x",
        "size=",
        "size=1&size=2",
        "cursor=nonsense",
        "cursor=",
    ] {
        let error = read(bad).unwrap_err();
        let name = decoded(bad).pop().unwrap().0;
        assert_eq!(error.parameter, name, "{bad}: {error}");
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
    let long = "x".repeat(1025);
    for name in ["filters[name][EQUALS]", "filters[name][IN]", "filters[parameters][EQUALS][a]", "q"] {
        assert!(read(&format!("{name}={long}")).is_err(), "{name}");
    }
    let many =
        |count: usize| (0..count).map(|n| format!("filters[labels][EQUALS][l{n}]=x")).collect::<Vec<_>>();
    assert!(read(&many(64).join("&")).is_ok() && read(&many(65).join("&")).is_err());
    let listed = |count: usize| format!("filters[name][IN]={}", vec!["x"; count].join(","));
    assert!(read(&listed(100)).is_ok() && read(&listed(101)).is_err());
}

#[test]
fn fields_of_a_form_that_nobody_filled_in_are_no_filters() {
    let pairs = [("q", ""), ("filters[name][CONTAINS]", ""), ("filters[state][IN]", "failed"), ("size", "")];
    let search = Search::read_filled(pairs).unwrap();
    assert_eq!(search.query(), "filters%5Bstate%5D%5BIN%5D=failed");
}

#[test]
fn one_parameter_is_looked_up_and_taken_out() {
    let mut search = read("q=a b&filters[name][CONTAINS]=x&filters[labels][EQUALS][env]=&size=7").unwrap();
    assert_eq!(search.get("q").as_deref(), Some("a b"));
    assert_eq!(search.get(&label("env")).as_deref(), Some(""));
    assert!(search.remove(&Field::Name.compared(Operator::Contains)) && !search.remove("cursor"));
    assert_eq!(search.get(&Field::Name.compared(Operator::Contains)), None);
    assert_eq!((search.text(), search.size()), (Some("a b"), 7));
}

#[test]
fn a_place_reads_back_and_nonsense_does_not() {
    let place = Cursor { at: Moment::from_millis(1_700_000_000_000), id: Uuid::from_u128(7) };
    assert_eq!(place.to_string().parse(), Ok(place));
    for bad in ["", "-", "x-y", "12", "zz-00000000000000000000000000000007"] {
        assert_eq!(bad.parse::<Cursor>(), Err(NoCursor));
    }
}

#[test]
fn values_of_parameters_are_compared_as_json_writes_them() {
    use serde_json::json;
    for (value, text) in [
        (json!("a\u{0}b"), Some("a\u{0}b")),
        (json!(3), Some("3")),
        (json!(3.0), Some("3")),
        (json!(1e21), Some("1e+21")),
        (json!(true), Some("true")),
        (json!(null), None),
        (json!(["a"]), None),
    ] {
        assert_eq!(comparable(&value).as_deref(), text);
    }
}

fn values_of(field: Field, operator: Operator) -> BoxedStrategy<String> {
    let several = operator.takes_several();
    let count = if several { 1..5_usize } else { 1..2 };
    let whole = matches!(operator, Operator::Equals | Operator::NotEquals | Operator::In | Operator::NotIn);
    let texts: BoxedStrategy<Vec<String>> = match field {
        Field::CreatedAt | Field::FinishedAt => proptest::collection::vec(
            (0_i64..4_000_000_000_000).prop_map(|at| Moment::from_millis(at).to_string()),
            count,
        )
        .boxed(),
        Field::State if whole => {
            let words = RequestState::ALL.map(|state| state.as_str().to_uppercase()).to_vec();
            proptest::collection::vec(proptest::sample::select(words), count).boxed()
        }
        Field::Channel if whole => {
            let words = ["api", "form", "hook"].map(str::to_owned).to_vec();
            proptest::collection::vec(proptest::sample::select(words), count).boxed()
        }
        Field::ParentId if whole => {
            proptest::collection::vec(any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string()), count)
                .boxed()
        }
        _ => proptest::collection::vec("[\\PC,\"%_\\\\&=+\\[\\] ]{1,12}", count).boxed(),
    };
    texts.prop_map(move |texts| if several { spelling::list(&texts) } else { texts.concat() }).boxed()
}

prop_compose! {
    fn pair()(field in proptest::sample::select(Field::ALL.to_vec()),
              operator in proptest::sample::select(Operator::ALL.to_vec()))
             (value in values_of(field, operator), name in Just(field.compared(operator)),
              possible in Just(!(field.is_time() && matches!(operator, Operator::Contains | Operator::StartsWith))))
             -> Option<(String, String)> {
        possible.then_some((name, value))
    }
}

proptest! {
    /// Whatever is asked for, its address asks for the same, and is the same for the same search.
    #[test]
    fn a_search_reads_back_from_its_own_address(
        filters in proptest::collection::vec(pair(), 0..6),
        labels in proptest::collection::btree_map("[a-z0-9._/-]{1,9}", "\\PC{0,9}", 0..3),
        parameters in proptest::collection::btree_map("\\PC{1,9}", ".{0,9}", 0..3),
        text in proptest::option::of(".{1,20}"),
        size in 1_u32..=1000,
        cursor in proptest::option::of((0_i64..4_000_000_000_000, any::<u128>())),
    ) {
        let mut pairs: BTreeMap<String, String> = filters.into_iter().flatten().collect();
        pairs.extend(labels.iter().map(|(key, value)| (label(key), value.clone())));
        pairs.extend(parameters.iter().map(|(name, value)| (parameter(name), value.clone())));
        pairs.extend(text.map(|text| ("q".to_owned(), text)));
        pairs.insert("size".to_owned(), size.to_string());
        pairs.extend(cursor.map(|(at, id)| {
            let cursor = Cursor { at: Moment::from_millis(at), id: Uuid::from_u128(id) };
            ("cursor".to_owned(), cursor.to_string())
        }));
        let search = Search::read(&pairs).unwrap();
        let query = search.query();
        let again = Search::read_query(&query).unwrap();
        prop_assert_eq!(&again, &search);
        prop_assert_eq!(again.query(), query);
        for name in pairs.keys() {
            prop_assert!(search.get(name).is_some() || name == "size");
        }
        let kept: Search = serde_json::from_str(&serde_json::to_string(&search).unwrap()).unwrap();
        prop_assert_eq!(kept, search);
    }

    /// No address makes it fall over, and what it accepts it can spell.
    #[test]
    fn any_address_is_understood_or_refused(query in "(q|size|filters\\[[a-z_]{0,6}\\]\\[[A-Z_]{0,8}\\]|.{0,6})(=.{0,9})?(&.{0,20})?") {
        if let Ok(search) = Search::read_query(&query) {
            prop_assert_eq!(Search::read_query(&search.query()).unwrap(), search);
        }
    }
}
