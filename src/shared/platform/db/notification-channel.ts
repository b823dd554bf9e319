import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../timeout/with-timeout.ts';
import type { PostgresConnection, PostgresConnector } from './postgres-connector.ts';

const retryMs = 1_000;
const sendMs = 5_000;
const closeMs = 1_000;

/** Whoever listens on a channel. */
export interface ChannelListener {
  onMessage(payload: string): void;
  /** From now on, nothing is missed; `isAgain`: something may have been since the last time. */
  onOpen(isAgain: boolean): void;
  /** What is said from now on is missed. */
  onLost(): void;
}

/**
 * Sends and receives notifications on one channel. All who listen get them in the same order, that of their commits. Uses one connection,
 * opened when it is first needed. Behind a pooler of transactions nothing is received.
 */
export class NotificationChannel {
  readonly #connector: PostgresConnector;
  readonly #name: string;
  #listener: ChannelListener | undefined;
  #connection: Promise<PostgresConnection> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #listening: PostgresConnection | undefined;
  #wasOpen = false;
  #isClosed = false;

  constructor(connector: PostgresConnector, name: string) {
    this.#connector = connector;
    this.#name = name;
  }

  /** Listens from now on, again after each lost connection. At most one listener. */
  listen(listener: ChannelListener): void {
    if (this.#listener) throw new Error(`Somebody listens on ${this.#name} already`);
    this.#listener = listener;
    if (this.#connection) this.#connection.then((open) => this.#startListening(open)).catch(() => {});
    else this.#keepOpen();
  }

  /** Sends the payloads, each below 8,000 bytes, in one transaction that waits for no disk. Throws if they may not have been sent. */
  async send(payloads: readonly string[]): Promise<void> {
    const { client, destroy } = await this.#open();
    const sending = client.query(
      `/* notifications.send */ select set_config('synchronous_commit', 'off', true), pg_notify($1, payload) from unnest($2::text[]) as payload`,
      [this.#name, payloads],
    );
    sending.catch(() => {});
    await withTimeout(sending, sendMs, () => {
      destroy();
      return new Error(`Postgres has not taken notifications within ${sendMs} ms`);
    });
  }

  /** Does not wait for a connection that is being opened. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    const ending = this.#connection?.then((open) => open.end()).catch(() => {});
    await Promise.race([ending, sleep(closeMs, undefined, { ref: false })]);
  }

  #keepOpen(): void {
    this.#retry = undefined;
    if (this.#isClosed) return;
    this.#open().catch(() => this.#openLater());
  }

  #openLater(): void {
    if (!this.#isClosed && this.#listener) this.#retry ??= setTimeout(() => this.#keepOpen(), retryMs).unref();
  }

  #open(): Promise<PostgresConnection> {
    if (this.#isClosed) return Promise.reject(new Error('The channel is closed'));
    this.#connection ??= this.#connect().catch((error: unknown) => {
      this.#connection = undefined;
      throw error;
    });
    return this.#connection;
  }

  async #connect(): Promise<PostgresConnection> {
    const opened = await this.#connector.connect();
    opened.client.on('notification', ({ channel, payload }) => {
      if (channel === this.#name && payload !== undefined) this.#listener?.onMessage(payload);
    });
    let isLost = false;
    opened.client.once('end', () => {
      isLost = true;
      this.#connection = undefined;
      if (!this.#isClosed) this.#listener?.onLost();
      this.#openLater();
    });
    if (this.#listener) await this.#startListening(opened);
    if (isLost) throw new Error('The connection was lost');
    return opened;
  }

  async #startListening(opened: PostgresConnection): Promise<void> {
    if (this.#listening === opened) return;
    this.#listening = opened;
    const { client, destroy } = opened;
    try {
      await client.query(`listen ${client.escapeIdentifier(this.#name)}`);
    } catch (error) {
      destroy();
      throw error;
    }
    this.#listener?.onOpen(this.#wasOpen);
    this.#wasOpen = true;
  }
}
