(function () {
  var field = document.getElementById("request_id");
  if (!field) return;
  var state = history.state || {}, kept = state.keyturnForm, path = location.pathname;
  if (!field.dataset.fixed) {
    if (kept && kept.path === path) {
      field.value = kept.id;
    } else {
      try {
        var id = new URLSearchParams(location.search).get("resume");
        var form = id && JSON.parse(sessionStorage.getItem("keyturn.form." + id));
        if (form && form.user === field.dataset.user && form.path === path) field.value = id;
      } catch (error) { /* Nothing readable is kept: the page's own ID stands. */ }
    }
  }
  history.replaceState(Object.assign({}, state, { keyturnForm: { path: path, id: field.value } }), "");
})();
