// The search of these pages runs in a web worker, and browsers refuse workers to pages that are opened as files.
// There, and only there, this takes their place: the same script in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((resolve) => frame.addEventListener("load", () => resolve(frame.contentWindow)));
      frame.srcdoc = `<script>
        postMessage = (data) => frameElement.worker.dispatchEvent(new MessageEvent("message", { data }));
        importScripts = async (...urls) => {
          for (const src of urls)
            await new Promise((resolve) => document.body.append(
              Object.assign(document.createElement("script"), { src, onload: resolve })));
        };
      </scr` + `ipt><script src="${new URL(url, location)}"></scr` + `ipt>`;
      frame.worker = this;
      document.body.append(frame);
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
