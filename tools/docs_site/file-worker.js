// Search runs in a worker, and a browser starts none for a page that was opened as a file. There this stands for it: a
// frame without content, in which the script of the worker runs. Served pages keep the browser's own.
if (location.protocol === "file:") {
  window.Worker = class {
    onmessage = null;
    onerror = null;
    #frame = document.createElement("iframe");
    #waiting = [];
    #isReady = false;

    constructor(address) {
      this.#frame.hidden = true;
      // Some browsers load the frame's empty document later, and drop what was put into it before.
      this.#frame.addEventListener("load", () => this.#start(new URL(address, location)), { once: true });
      document.body.append(this.#frame);
    }

    #start(address) {
      const inner = this.#frame.contentWindow;
      // Both sides own what they get, as they do with a worker.
      inner.postMessage = (message) => {
        const data = structuredClone(message);
        setTimeout(() => this.onmessage?.({ data }));
      };
      const script = inner.document.createElement("script");
      script.src = address;
      script.onerror = (event) => this.onerror?.(event);
      script.onload = () => {
        this.#isReady = true;
        this.#waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      inner.document.body.append(script);
    }

    postMessage(message) {
      const data = structuredClone(message);
      if (this.#isReady) setTimeout(() => this.#frame.contentWindow?.onmessage({ data }));
      else this.#waiting.push(data);
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
