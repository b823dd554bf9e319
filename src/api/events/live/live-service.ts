import type { RightsNotification } from '../../../shared/events/live/notification.ts';
import type { NotificationSender } from '../../../shared/events/live/notification-sender.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { mapDatabaseError } from '../../../shared/platform/db/sqlstate.ts';
import { UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import type { CallTarget } from '../../access/authorize-call.ts';
import type { Caller } from '../../platform/http/request.ts';
import { LiveHub, type LiveTopic } from './live-hub.ts';
import type { LiveStream } from './live-stream.ts';
import { LiveTopics, type PermittedTopics } from './live-topics.ts';
import { type StreamShare, StreamShares } from './stream-shares.ts';

/** Streams of one user in one process: several windows with many tabs. */
const maxPerUser = 100;
/** Permissions are checked again after this time without notifications. */
const recheckMs = 60_000;
const tickMs = 1_000;
/** The number is limited, because other calls also need connections to Postgres. */
const checksAtOnce = 2;

export interface LiveViewer {
  /** A user, or a token of a team or an organization. */
  readonly id: string;
  /** Topics in the form that LiveTopics returns. */
  readonly topics: readonly string[];
  /** Throws UnauthenticatedError if the viewer's session or token has ended. */
  confirm(): Promise<void>;
  /** Throws UnauthenticatedError. */
  findAt(target: CallTarget): Promise<Caller>;
  /** Closes the connection if the client does not read. */
  cut(): void;
}

interface Watching {
  readonly viewer: LiveViewer;
  readonly topics: ReadonlySet<string>;
  readonly organizationIds: ReadonlySet<string>;
  readonly share: StreamShare;
  /** When permissions are checked again, by `performance.now()`. */
  checkAt: number;
  isChecking: boolean;
}

/** Admits the streams of pages, and ends them when permissions are lost. */
export class LiveService {
  readonly #hub: LiveHub;
  readonly #logger: Logger;
  readonly #topics: LiveTopics;
  readonly #watching = new Map<LiveStream, Watching>();
  readonly #shares: StreamShares;
  #timer: NodeJS.Timeout | undefined;
  #checks = 0;
  /** Counts changes of any viewer's permissions. */
  #rightsNotifications = 0;

  constructor({ config, db, logger, metrics, notifications }: LiveParts) {
    this.#logger = logger;
    this.#topics = new LiveTopics(db);
    // The other connections are for calls.
    this.#shares = new StreamShares(Math.ceil(config.front.maxConnections / 2));
    this.#hub = new LiveHub({ channel: notifications.channel, logger }, (notification) =>
      this.#rightsChanged(notification),
    );
    metrics.gauge('holdfast_live_streams', 'Notification streams to pages.', () => this.#hub.streams);
  }

  /**
   * `after`: the id of the last message that the client has received; null: it is new. Throws InvalidRequestError, NotFoundError,
   * UnauthenticatedError, TooManyRequestsError, UnavailableError.
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
      // A permission may have been lost between the check and the registration.
      const isSure = wasOpen && this.#rightsNotifications === rightsBefore;
      const checkAt = isSure ? nextCheck() : performance.now();
      const watching = { viewer, organizationIds, share, topics: namesOf(topics), checkAt, isChecking: false };
      this.#watching.set(stream, watching);
      this.#timer ??= outsideCalls(() => setInterval(() => this.#checkDue(), tickMs).unref());
      return stream;
    } catch (error) {
      share.end();
      throw error;
    }
  }

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

  drain(): void {
    clearInterval(this.#timer);
    this.#hub.drain();
  }

  async #permitted(viewer: LiveViewer): Promise<PermittedTopics> {
    await viewer.confirm();
    return this.#topics.permit(viewer.topics, (target) => viewer.findAt(target));
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
      // A name may now refer to another object.
      if (namesOf(topics).symmetricDifference(watching.topics).size > 0) stream.end('rights');
    } catch (error) {
      const { status = 500 } = mapDatabaseError(error) as { status?: number };
      if (status < 500) stream.end('rights');
      else this.#logger.debug({ err: error }, 'live: permissions could not be checked');
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

/** Spreads the checks of pages that connected at the same time. */
function nextCheck(): number {
  return performance.now() + recheckMs * (0.75 + Math.random() / 2);
}

function concerns(notification: RightsNotification | null, { organizationIds, viewer }: Watching): boolean {
  if (notification === null) return true;
  return notification.of === 'user' ? viewer.id === notification.id : organizationIds.has(notification.id);
}

function namesOf(topics: readonly LiveTopic[]): Set<string> {
  return new Set(topics.map(({ id, name }) => `${name} ${id}`));
}
