/** Something has changed, and the page reloads its data. */
export interface LiveMessage {
  readonly topic: string | null;
  readonly kind: string;
  readonly updateId?: string | undefined;
}

/** The server accepts at most this many topics. */
const maxTopics = 10;
/** On navigation, topics are removed and added together: one new stream covers both changes. */
const settleMs = 50;
/** A stream ends when the viewer's permissions change, and may be refused permanently: retries then become less and less frequent. */
const retryMs = 5_000;
const maxRetryMs = 300_000;
/** A tab that is hidden for longer has no stream: over HTTP/1.1, six streams would use up all connections of a browser to the server. */
const hiddenMs = 10_000;
/** The longest wait for a stream to begin. */
const patienceMs = 2_000;

interface Follower {
  readonly onMessage: (message: LiveMessage) => void;
  /** Whether the stream works, and covers the topic. */
  readonly onState: (isLive: boolean) => void;
}

interface Listener {
  readonly onMessage: (message: LiveMessage) => void;
  /** The connection is established again. */
  readonly onConnected: () => void;
  /** The connection was cut: the browser tries to reconnect. */
  readonly onCut: () => void;
  /** `afterMs` is when the server allows another stream; false: the server refuses it. */
  readonly onEnd: (afterMs: number | false) => void;
}

/** Opens a stream; returns a function that ends it. */
type OpenStream = (topics: string[], listener: Listener) => () => void;

/** All pages of this tab share one stream. */
export class LiveFollowers {
  readonly #open: OpenStream;
  readonly #followers = new Map<string, Set<Follower>>();
  #stream: { readonly topics: readonly string[]; hasBegun: boolean; isLive: boolean; stop: () => void } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Topics that were refused without a message, and the refusals in a row. */
  #refused = { topics: '', count: 0 };
  #isNeeded = true;
  /** Called when the stream begins. */
  readonly #waiting = new Set<() => void>();

  constructor(open: OpenStream) {
    this.#open = open;
  }

  /** Follows a topic. Returns a function that ends this. */
  follow(topic: string, follower: Follower): () => void {
    const others = this.#followers.get(topic) ?? new Set();
    this.#followers.set(topic, others.add(follower));
    this.#restart(settleMs);
    return () => {
      others.delete(follower);
      if (others.size === 0) this.#followers.delete(topic);
      this.#restart(settleMs);
    };
  }

  /** A tab is needed if a user sees it, or is notified by it. A new stream covers missed changes: `ready` makes pages read anew. */
  setNeeded(isNeeded: boolean): void {
    if (isNeeded === this.#isNeeded) return;
    this.#isNeeded = isNeeded;
    this.#restart(isNeeded || this.#stream === null ? 0 : hiddenMs);
  }

  /** Calls `act` once the stream that is about to begin has made pages reload their data; immediately if there is none. */
  afterStart(act: () => void): void {
    if (this.#stream?.hasBegun === true || this.#followers.size === 0) {
      act();
      return;
    }
    const once = (): void => {
      clearTimeout(timer);
      if (this.#waiting.delete(once)) act();
    };
    const timer = setTimeout(once, patienceMs);
    this.#waiting.add(once);
  }

  #restart(afterMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), afterMs);
  }

  #start(): void {
    const topics = this.#isNeeded ? [...this.#followers.keys()].sort().slice(-maxTopics) : [];
    if (this.#stream?.topics.join() === topics.join()) {
      this.#publish();
      return;
    }
    this.#stream?.stop();
    this.#stream = null;
    this.#publish();
    if (topics.length === 0) return;
    const stream = { topics, hasBegun: false, isLive: false, stop: () => {} };
    this.#stream = stream;
    const isCurrent = (): boolean => this.#stream === stream;
    const become = (isLive: boolean): void => {
      stream.isLive = isLive;
      this.#publish();
    };
    stream.stop = this.#open(topics, {
      onMessage: (message) => {
        if (!isCurrent() || message.kind === 'position') return;
        // After a cut, the server sends the missed messages, or `refetch`.
        if (message.kind === 'ready' && stream.hasBegun) return become(true);
        stream.hasBegun = true;
        become(true);
        this.#pass(message);
        for (const act of this.#waiting) act();
      },
      onConnected: () => {
        if (isCurrent() && stream.hasBegun) become(true);
      },
      onCut: () => {
        if (isCurrent()) become(false);
      },
      onEnd: (afterMs) => {
        if (!isCurrent()) return;
        this.#stream = null;
        this.#publish();
        const name = topics.join();
        const isRefused = afterMs === false && !stream.hasBegun;
        const count = isRefused ? (this.#refused.topics === name ? this.#refused.count + 1 : 1) : 0;
        this.#refused = { topics: name, count };
        this.#restart(Math.max(Math.min(retryMs * 2 ** Math.max(0, count - 1), maxRetryMs), Number(afterMs)));
      },
    });
  }

  #pass(message: LiveMessage): void {
    for (const [topic, group] of this.#followers) {
      if (message.topic !== null && message.topic !== topic) continue;
      for (const { onMessage } of group) onMessage(message);
    }
  }

  /** A topic beyond the maximum of the stream is never live. */
  #publish(): void {
    const live = this.#stream?.isLive ? this.#stream.topics : [];
    for (const [topic, group] of this.#followers) for (const { onState } of group) onState(live.includes(topic));
  }
}
