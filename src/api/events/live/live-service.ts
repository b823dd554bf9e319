import type { RightsNotification } from '../../../shared/events/live/notification.ts';
import type { NotificationSender } from '../../../shared/events/live/notification-sender.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { mapDatabaseError } from '../../../shared/platform/db/sqlstate.ts';
import { UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import type { Place } from '../../access/admission.ts';
import type { Caller } from '../../platform/http/request.ts';
import { LiveHub, type LiveTopic } from './live-hub.ts';
import type { LiveStream } from './live-stream.ts';
import { LiveTopics, type PermittedTopics } from './live-topics.ts';
import { type StreamShare, StreamShares } from './stream-shares.ts';

/** Streams that one user may have in one process: several windows with many tabs. */
const maxPerUser = 100;
/** Without a notice, rights are checked again after this time, in ms. */
const recheckMs = 60_000;
const tickMs = 1_000;
/** Streams whose rights are checked at the same time: the connections to Postgres are for others, too. */
const checksAtOnce = 2;

/** Who watches what. */
export interface LiveViewer {
  /** The user, or the token of a team or an organization. */
  readonly id: string;
  /** As LiveTopics has them. */
  readonly topics: readonly string[];
  /** Throws UnauthenticatedError if the viewer's session has ended, or their token. */
  confirm(): Promise<void>;
  /** What decides about the viewer at a place now. Throws UnauthenticatedError. */
  findAt(place: Place): Promise<Caller>;
  /** Closes the connection of a client that does not read. */
  cut(): void;
}

interface Watching {
  readonly viewer: LiveViewer;
  readonly topics: ReadonlySet<string>;
  readonly organizationIds: ReadonlySet<string>;
  readonly share: StreamShare;
  /** When rights are checked again, by `performance.now()`. */
  checkAt: number;
  isChecking: boolean;
}

/** Streams of notices for pages: who may have which, and for how long. */
export class LiveService {
  readonly #hub: LiveHub;
  readonly #logger: Logger;
  readonly #topics: LiveTopics;
  readonly #watching = new Map<LiveStream, Watching>();
  readonly #shares: StreamShares;
  #timer: NodeJS.Timeout | undefined;
  #checks = 0;
  /** How often rights have changed, whosever they were. */
  #rightsNotifications = 0;

  constructor({ config, db, logger, metrics, notifications }: LiveParts) {
    this.#logger = logger;
    this.#topics = new LiveTopics(db);
    // The rest is for calls.
    this.#shares = new StreamShares(Math.ceil(config.front.maxConnections / 2));
    this.#hub = new LiveHub({ channel: notifications.channel, logger }, (notification) =>
      this.#rightsChanged(notification),
    );
    metrics.gauge('holdfast_live_streams', 'Streams of notices to pages.', () => this.#hub.streams);
  }

  /**
   * Begins a stream. `after` is the id of the last message that the client has had; null: it is new. Throws
   * InvalidRequestError, NotFoundError, UnauthenticatedError, TooManyRequestsError, UnavailableError.
   */
  async open(viewer: LiveViewer, after: string | null): Promise<LiveStream> {
    if (this.#hub.isDraining) throw new UnavailableError('This server is about to stop');
    const share = this.#shares.open();
    try {
      share.take(`user ${viewer.id}`, { most: maxPerUser, who: 'you have' });
      const [wasOpen, rightsBefore] = [this.#hub.isOpen, this.#rightsNotifications];
      const { organizationIds, topics } = await this.#permitted(viewer);
      for (const id of organizationIds) share.take(`organization ${id}`, { who: 'your organization has' });
      const stream = await this.#hub.subscribe(topics, after, () => viewer.cut());
      // A right may have been lost after it was checked and before this stream could be told of it.
      const isSure = wasOpen && this.#rightsNotifications === rightsBefore;
      const checkAt = isSure ? nextCheck() : performance.now();
      const watching = { viewer, organizationIds, share, topics: namesOf(topics), checkAt, isChecking: false };
      this.#watching.set(stream, watching);
      this.#timer ??= setInterval(() => this.#checkDue(), tickMs).unref();
      return stream;
    } catch (error) {
      share.end();
      throw error;
    }
  }

  /** Forgets a stream that its client has left, or that has ended. */
  leave(stream: LiveStream): void {
    const watching = this.#watching.get(stream);
    if (!watching) return;
    this.#watching.delete(stream);
    this.#hub.leave(stream);
    watching.share.end();
    if (this.#watching.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Ends all streams: this process is about to stop. */
  drain(): void {
    clearInterval(this.#timer);
    this.#hub.drain();
  }

  async #permitted(viewer: LiveViewer): Promise<PermittedTopics> {
    await viewer.confirm();
    return this.#topics.permit(viewer.topics, (place) => viewer.findAt(place));
  }

  #rightsChanged(notification: RightsNotification | null): void {
    this.#rightsNotifications++;
    for (const watching of this.#watching.values()) if (concerns(notification, watching)) watching.checkAt = 0;
    this.#checkDue();
  }

  #checkDue(): void {
    const now = performance.now();
    for (const [stream, watching] of this.#watching) {
      if (this.#checks >= checksAtOnce) return;
      if (watching.isChecking || watching.checkAt > now) continue;
      this.#checks++;
      void this.#check(stream, watching).finally(() => {
        this.#checks--;
        if (this.#watching.size > 0) this.#checkDue();
      });
    }
  }

  async #check(stream: LiveStream, watching: Watching): Promise<void> {
    watching.isChecking = true;
    watching.checkAt = nextCheck();
    try {
      const { topics } = await this.#permitted(watching.viewer);
      // A name may stand for something else by now.
      if (namesOf(topics).symmetricDifference(watching.topics).size > 0) stream.end('rights');
    } catch (error) {
      const { status = 500 } = mapDatabaseError(error) as { status?: number };
      if (status < 500) stream.end('rights');
      else this.#logger.debug({ err: error }, 'live: rights could not be checked');
    } finally {
      watching.isChecking = false;
    }
  }
}

interface LiveParts {
  readonly config: { readonly front: { readonly maxConnections: number } };
  readonly db: Queryable;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly notifications: NotificationSender;
}

/** Spread, so that pages which came together are not checked together. */
function nextCheck(): number {
  return performance.now() + recheckMs * (0.75 + Math.random() / 2);
}

/** Whether a change of rights may be one of the viewer's. */
function concerns(notification: RightsNotification | null, { organizationIds, viewer }: Watching): boolean {
  if (notification === null) return true;
  return notification.of === 'user' ? viewer.id === notification.id : organizationIds.has(notification.id);
}

function namesOf(topics: readonly LiveTopic[]): Set<string> {
  return new Set(topics.map(({ id, name }) => `${name} ${id}`));
}
