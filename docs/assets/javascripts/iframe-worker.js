// Search runs in a Worker, which browsers refuse to pages opened from disk. There, run its script
// in a hidden frame of the same page instead: no server and no other host is needed.
(() => {
  if (location.protocol !== "file:") return;
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = (this.inner = frame.contentWindow);
      inner.postMessage = (data) => this.answer(data);
      inner.importScripts = (...urls) =>
        urls.reduce((last, each) => last.then(() => load(inner, each)), Promise.resolve());
      this.ready = load(inner, url);
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    answer(data) {
      const event = new MessageEvent("message", { data });
      if (this.onmessage) this.onmessage(event);
      this.dispatchEvent(event);
    }
  };
  const load = (inner, url) =>
    new Promise((done, failed) => {
      const script = inner.document.createElement("script");
      script.src = url;
      script.onload = done;
      script.onerror = failed;
      inner.document.body.appendChild(script);
    });
})();
