import type { Socket } from 'node:net';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';
import { addressGroup, isTrusted, plainAddress } from './client-address.ts';
import { rawResponse } from './raw-response.ts';

/** Least time between two log lines about refused connections, in ms. */
const quietMs = 10_000;
/** Refused connections that are given time to read why; more are closed without a word. */
const maxRefusing = 128;
const refusalMs = 1_000;

type Reason = 'total' | 'address';

const sentences: Readonly<Record<Reason, string>> = {
  total: 'There are too many connections to this server at the moment; please retry',
  address: 'There are too many connections from your address at the moment; please retry',
};

/** Counts the connections of a process, and turns those away that are more than the limits. */
export class ConnectionLimits {
  readonly #config: Pick<Config, 'front' | 'trustedProxies'>;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  /** Open connections by what a client can have, without those of trusted proxies. */
  readonly #byGroup = new Map<string, number>();
  #strangers = 0;
  #proxies = 0;
  #refusing = 0;
  #refusedSinceLine = 0;
  #lineAt = Number.NEGATIVE_INFINITY;

  constructor(config: Pick<Config, 'front' | 'trustedProxies'>, { logger, metrics }: ConnectionReports) {
    this.#config = config;
    this.#logger = logger;
    this.#metrics = metrics;
  }

  /** Open connections that were let in. */
  get open(): number {
    return this.#strangers + this.#proxies;
  }

  /** Takes a place for the connection until it is closed, and returns true; or refuses it, `inWords` when it can read HTTP. */
  admit(socket: Socket, { inWords }: { inWords: boolean }): boolean {
    const address = plainAddress(socket.remoteAddress ?? '');
    const isProxy = isTrusted(address, this.#config.trustedProxies);
    const group = addressGroup(address);
    const { maxConnections, maxConnectionsPerAddress } = this.#config.front;
    if ((isProxy ? this.#proxies : this.#strangers) >= maxConnections) return this.#refuse(socket, 'total', inWords);
    if (!isProxy && (this.#byGroup.get(group) ?? 0) >= maxConnectionsPerAddress)
      return this.#refuse(socket, 'address', inWords);
    if (isProxy) this.#proxies++;
    else this.#add(group, 1);
    socket.once('close', () => {
      if (isProxy) this.#proxies--;
      else this.#add(group, -1);
    });
    return true;
  }

  #add(group: string, change: 1 | -1): void {
    this.#strangers += change;
    const count = (this.#byGroup.get(group) ?? 0) + change;
    if (count === 0) this.#byGroup.delete(group);
    else this.#byGroup.set(group, count);
  }

  #refuse(socket: Socket, reason: Reason, inWords: boolean): false {
    this.#metrics.connectionsRefused.labels(reason).inc();
    this.#tell(reason);
    if (!inWords || this.#refusing >= maxRefusing) {
      socket.destroy();
      return false;
    }
    this.#refusing++;
    // What it sends is dropped for a moment: closed with bytes unread, the connection would be reset before it has read the answer.
    const timer = setTimeout(() => socket.destroy(), refusalMs);
    socket.once('close', () => {
      clearTimeout(timer);
      this.#refusing--;
    });
    socket.on('error', () => {}).resume();
    socket.end(rawResponse({ code: 503, message: sentences[reason] }));
    return false;
  }

  #tell(reason: Reason): void {
    this.#refusedSinceLine++;
    const now = performance.now();
    if (now - this.#lineAt < quietMs) return;
    this.#lineAt = now;
    const refused = this.#refusedSinceLine;
    this.#refusedSinceLine = 0;
    this.#logger.warn({ limit: reason, refused, open: this.open }, 'connections refused');
  }
}

/** Where the limits tell of what they refuse. */
export interface ConnectionReports {
  readonly logger: Logger;
  readonly metrics: Metrics;
}
