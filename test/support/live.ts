import { queryPath } from './procedures.ts';
import { until } from './until.ts';

/** An event of a stream of server-sent events. */
interface StreamEvent {
  readonly event: string;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape.
  readonly data: any;
}

export interface StreamOptions {
  /** Token or cookie. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of the last message that the client has had. */
  readonly after?: string;
}

/** A page's stream of notices, read as it arrives. */
export class LivePage implements Disposable {
  readonly response: Response;
  readonly events: StreamEvent[] = [];
  /** Set when the server has ended the stream. */
  isEnded = false;
  readonly #closing: AbortController;

  private constructor(response: Response, closing: AbortController) {
    this.response = response;
    this.#closing = closing;
    void this.#read();
  }

  /** Waits for the first message, or for the end of the stream. */
  static async open(url: string, topics: readonly string[], { after, headers }: StreamOptions): Promise<LivePage> {
    const closing = new AbortController();
    const response = await fetch(`${url}${queryPath('live.subscribe', { topics })}`, {
      headers: { accept: 'text/event-stream', ...headers, ...(after === undefined ? {} : { 'last-event-id': after }) },
      signal: closing.signal,
    });
    const page = new LivePage(response, closing);
    await until(() => page.isEnded || page.messages.length > 0, 'the first message');
    return page;
  }

  /** The notifications that the page received. */
  get messages(): StreamEvent['data'][] {
    return this.events.filter(({ event }) => event === 'message').map(({ data }) => data);
  }

  /** Id of the last message. */
  get lastId(): string | undefined {
    return this.events.findLast(({ id }) => id !== '')?.id;
  }

  /** The error has ended the stream; null: it has not, or without one. */
  get error(): string | null {
    return this.events.find(({ event }) => event === 'serialized-error')?.data.data.code ?? null;
  }

  has(wanted: Readonly<Record<string, unknown>>): boolean {
    return this.messages.some((message) => Object.entries(wanted).every(([key, value]) => message[key] === value));
  }

  async gets(wanted: Readonly<Record<string, unknown>>): Promise<void> {
    await until(() => this.has(wanted), `a notice ${JSON.stringify(wanted)}`);
  }

  async ends(): Promise<void> {
    await until(() => this.isEnded, 'the end of the stream');
  }

  [Symbol.dispose](): void {
    this.#closing.abort();
  }

  async #read(): Promise<void> {
    let text = '';
    try {
      for await (const part of this.response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += part;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          this.#add(text.slice(0, end));
          text = text.slice(end).replace(/^\n+/, '');
        }
      }
    } catch {
      // Cut, or closed by the test.
    }
    this.isEnded = true;
  }

  #add(block: string): void {
    const fields = new Map(block.split('\n').map((line) => line.split(/: ?(.*)/s, 2) as [string, string]));
    const data = fields.get('data') ?? '';
    const event = { event: fields.get('event') ?? 'message', id: fields.get('id') ?? '' };
    this.events.push({ ...event, data: data === '' ? null : JSON.parse(data) });
  }
}
