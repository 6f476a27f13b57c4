// The search runs in a worker, which browsers refuse to pages that are opened from a folder. There, a
// hidden frame takes the worker's place: the same script, the same messages, within the page's own thread.
"use strict";

class FrameWorker extends EventTarget {
  constructor(address) {
    super();
    this.waiting = [];
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.documentElement.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    const script = inside.document.createElement("script");
    script.src = address;
    script.onload = () => this.begin();
    inside.document.documentElement.append(script);
  }

  begin() {
    const early = this.waiting;
    this.waiting = null;
    early.forEach((data) => this.postMessage(data));
  }

  postMessage(data) {
    if (this.waiting) {
      this.waiting.push(data);
    } else {
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") {
  window.Worker = FrameWorker;
}
