// What the pages' own links do beyond being links. Without this script they load the page anew.
(() => {
  if (window.approvalTrail) return;
  window.approvalTrail = true;
  const closest = (event, selector) =>
    event.target instanceof Element ? event.target.closest(selector) : null;

  // A link to a page of ours changes the page in place, as going back and forward do.
  // While the page is still drawn, Streamlit may forget parameters of the next URL: so go afterwards.
  const drawn = () => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";
  const go = (url, until = Date.now() + 3000) => {
    if (!drawn()) {
      if (Date.now() > until) location.assign(url);
      else setTimeout(go, 20, url, until);
      return;
    }
    history.pushState({}, "", url);
    dispatchEvent(new PopStateEvent("popstate"));
    document.querySelector(".stMain")?.scrollTo(0, 0);
  };
  document.addEventListener("click", (event) => {
    const link = closest(event, ".stHtml a[href]");
    const special = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (!link || special || event.defaultPrevented) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || link.getAttribute("href").startsWith("#")) return;
    if (link.classList.contains("at-leaves")) return; // signing in and out is not a page of ours
    event.preventDefault();
    if (!dragged) go(url);
  });

  // A drag over a chart's columns zooms to all of them.
  let first = null;
  let dragged = false;
  const columns = (from, to) => {
    const all = [...from.parentElement.children];
    const [low, high] = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
    return all.slice(low, high + 1);
  };
  const unmark = () =>
    document.querySelectorAll(".at-brushed").forEach((one) => one.classList.remove("at-brushed"));
  document.addEventListener("dragstart", (event) => {
    if (closest(event, ".at-column")) event.preventDefault();
  });
  document.addEventListener("pointerdown", (event) => {
    dragged = false;
    first = event.button ? null : closest(event, "a.at-column");
  });
  document.addEventListener("pointermove", (event) => {
    const over = first && closest(event, "a.at-column");
    if (!over || over.parentElement !== first.parentElement) return;
    if (over !== first) dragged = true;
    if (!dragged) return;
    unmark();
    columns(first, over).forEach((one) => one.classList.add("at-brushed"));
  });
  document.addEventListener("pointerup", (event) => {
    const last = first && dragged && closest(event, "a.at-column");
    unmark();
    if (last && last.parentElement === first.parentElement) {
      const chosen = columns(first, last);
      const url = new URL(chosen[0].href);
      url.searchParams.set("to", new URL(chosen.at(-1).href).searchParams.get("to"));
      go(url);
    }
    first = null;
  });

  // A page that looks again replaces what it shows; whoever was on a link stays on it.
  let focused = null;
  document.addEventListener("focusin", (event) => {
    focused = closest(event, ".stHtml a[href]");
  });
  new MutationObserver(() => {
    if (!focused || focused.isConnected) return;
    const href = focused.getAttribute("href");
    focused = null;
    if (document.activeElement !== document.body) return;
    const same = [...document.querySelectorAll(".stHtml a[href]")];
    same.find((link) => link.getAttribute("href") === href)?.focus({ preventScroll: true });
  }).observe(document.body, { childList: true, subtree: true });
})();
