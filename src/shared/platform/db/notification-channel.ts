import { setTimeout as sleep } from 'node:timers/promises';
import { outsideCalls } from '../lifecycle/outside-calls.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import type { PostgresConnection, PostgresConnector } from './postgres-connector.ts';

const retryMs = 1_000;
const listenMs = 5_000;
const sendMs = 5_000;
const closeMs = 1_000;

export interface ChannelListener {
  onMessage(payload: string): void;
  /** From now on, nothing is missed. `isAgain`: notifications may have been missed in between. */
  onOpen(isAgain: boolean): void;
  /** From now on, notifications are missed. */
  onLost(): void;
}

/**
 * All listeners get the notifications in the order of the commits. The connection is opened when it is first needed. Behind a transaction
 * pooler, nothing is received.
 */
export class NotificationChannel {
  readonly #connector: PostgresConnector;
  readonly #name: string;
  readonly #listeners = new Set<ChannelListener>();
  /** These listeners were notified of an earlier connection. */
  readonly #openedBefore = new WeakSet<ChannelListener>();
  #connection: Promise<PostgresConnection> | undefined;
  /** Notifications arrive here. */
  #listening: PostgresConnection | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isWanted = false;
  #isClosed = false;

  constructor(connector: PostgresConnector, name: string) {
    this.#connector = connector;
    this.#name = name;
  }

  /** Listens once the first send, or `open`, has opened the connection. */
  listen(listener: ChannelListener): void {
    this.#listeners.add(listener);
    if (this.#listening) this.#notifyOpen(listener);
    else this.#connection?.then((open) => this.#startListening(open)).catch(() => {});
  }

  /** Reconnects whenever the connection is lost. */
  open(): void {
    this.#isWanted = true;
    if (!this.#connection && !this.#isClosed) this.#connect().catch(() => this.#openLater());
  }

  /**
   * Each payload has less than 8,000 bytes. Uses one transaction, which waits for no disk. `name`: the channel, if it is another one. Throws
   * if the payloads may not have been sent.
   */
  async send(payloads: readonly string[], name = this.#name): Promise<void> {
    const { client, destroy } = await this.#connect();
    const sending = client.query(
      `/* notifications.send */ select set_config('synchronous_commit', 'off', true), pg_notify($1, payload) from unnest($2::text[]) as payload`,
      [name, payloads],
    );
    sending.catch(() => {});
    await withTimeout(sending, sendMs, () => {
      destroy();
      return new Error(`Postgres has not taken notifications within ${sendMs} ms`);
    });
  }

  /** Does not wait for a connection that is still being opened. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    const ending = this.#connection?.then((open) => open.end()).catch(() => {});
    await Promise.race([ending, sleep(closeMs, undefined, { ref: false })]);
  }

  #openLater(): void {
    if (this.#isClosed || !this.#isWanted) return;
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.open();
    }, retryMs).unref();
  }

  #connect(): Promise<PostgresConnection> {
    if (this.#isClosed) return Promise.reject(new Error('The channel is closed'));
    this.#connection ??= outsideCalls(() => this.#connectNow()).catch((error: unknown) => {
      this.#connection = undefined;
      throw error;
    });
    return this.#connection;
  }

  async #connectNow(): Promise<PostgresConnection> {
    const opened = await this.#connector.connect();
    opened.client.on('notification', ({ channel, payload }) => {
      if (channel !== this.#name || payload === undefined) return;
      for (const listener of this.#listeners) listener.onMessage(payload);
    });
    let isLost = false;
    opened.client.once('end', () => {
      isLost = true;
      this.#connection = undefined;
      const isHeard = this.#listening === opened;
      if (isHeard) this.#listening = undefined;
      if (isHeard && !this.#isClosed) for (const listener of this.#listeners) listener.onLost();
      this.#openLater();
    });
    if (this.#listeners.size > 0) await this.#startListening(opened);
    if (isLost) throw new Error('The connection was lost');
    return opened;
  }

  async #startListening(opened: PostgresConnection): Promise<void> {
    if (this.#listening === opened) return;
    try {
      await listen(opened, this.#name);
    } catch (error) {
      opened.destroy();
      throw error;
    }
    if (this.#listening === opened) return;
    this.#listening = opened;
    for (const listener of this.#listeners) this.#notifyOpen(listener);
  }

  #notifyOpen(listener: ChannelListener): void {
    listener.onOpen(this.#openedBefore.has(listener));
    this.#openedBefore.add(listener);
  }
}

export async function listen({ client }: PostgresConnection, channel: string): Promise<void> {
  const listening = client.query(`listen ${client.escapeIdentifier(channel)}`);
  await withTimeout(listening, listenMs, () => new Error(`Postgres has not answered LISTEN within ${listenMs} ms`));
}
