import type { Socket } from 'node:net';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import { addressGroup, isTrusted, plainAddress } from './client-address.ts';
import { rawResponse } from './raw-response.ts';

/** The minimum time between two log lines about refused connections. */
const logEveryMs = 10_000;
/** Refused connections that stay open to read the error response; others are closed without one. */
const maxRefusing = 128;
const responseMs = 1_000;

type Reason = 'total' | 'address';

const messages: Readonly<Record<Reason, string>> = {
  total: 'There are too many connections to this server at the moment; please retry',
  address: 'There are too many connections from your address at the moment; please retry',
};

export class ConnectionLimits {
  readonly #config: Pick<Config, 'front' | 'trustedProxies'>;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  /** Open connections per address group, without those of trusted proxies. */
  readonly #byGroup = new Map<string, number>();
  #clients = 0;
  #proxies = 0;
  #refusing = 0;
  #refusedSinceLog = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(config: Pick<Config, 'front' | 'trustedProxies'>, { logger, metrics }: ConnectionReports) {
    this.#config = config;
    this.#logger = logger;
    this.#metrics = metrics;
  }

  get open(): number {
    return this.#clients + this.#proxies;
  }

  /** Counts the connection until it closes, or refuses it; `canRespond`: with an HTTP error response. */
  admit(socket: Socket, { canRespond }: { canRespond: boolean }): boolean {
    const address = plainAddress(socket.remoteAddress ?? '');
    const isProxy = isTrusted(address, this.#config.trustedProxies);
    const group = addressGroup(address);
    const { maxConnections, maxConnectionsPerAddress } = this.#config.front;
    if ((isProxy ? this.#proxies : this.#clients) >= maxConnections) return this.#refuse(socket, 'total', canRespond);
    if (!isProxy && (this.#byGroup.get(group) ?? 0) >= maxConnectionsPerAddress)
      return this.#refuse(socket, 'address', canRespond);
    if (isProxy) this.#proxies++;
    else this.#add(group, 1);
    socket.once('close', () => {
      if (isProxy) this.#proxies--;
      else this.#add(group, -1);
    });
    return true;
  }

  #add(group: string, change: 1 | -1): void {
    this.#clients += change;
    const count = (this.#byGroup.get(group) ?? 0) + change;
    if (count === 0) this.#byGroup.delete(group);
    else this.#byGroup.set(group, count);
  }

  #refuse(socket: Socket, reason: Reason, canRespond: boolean): false {
    this.#metrics.connectionsRejected.labels(reason).inc();
    this.#logRejection(reason);
    if (!canRespond || this.#refusing >= maxRefusing) {
      socket.destroy();
      return false;
    }
    this.#refusing++;
    // Discards input for a moment: closing with unread bytes would reset the connection before the client reads the response.
    const timer = setTimeout(() => socket.destroy(), responseMs);
    socket.once('close', () => {
      clearTimeout(timer);
      this.#refusing--;
    });
    socket.on('error', () => {}).resume();
    socket.end(rawResponse({ code: 503, message: messages[reason] }));
    return false;
  }

  #logRejection(reason: Reason): void {
    this.#refusedSinceLog++;
    const now = performance.now();
    if (now - this.#loggedAt < logEveryMs) return;
    this.#loggedAt = now;
    const refused = this.#refusedSinceLog;
    this.#refusedSinceLog = 0;
    this.#logger.warn({ limit: reason, refused, open: this.open }, 'connections refused');
  }
}

export interface ConnectionReports {
  readonly logger: Logger;
  readonly metrics: Metrics;
}
