const kinds = [
  'update.created',
  'update.started',
  'update.ended',
  'events.appended',
  'stack.changed',
  'queue.changed',
  'index.changed',
] as const;

/** What has happened. */
export type NotificationKind = (typeof kinds)[number];

/** Something that was committed, for those who look at it. Ids are those of the database; null: not known, or of no such thing. */
export interface Notification {
  readonly kind: NotificationKind;
  readonly organizationId: string | null;
  readonly stackId: string | null;
  readonly updateId: string | null;
}

/** Somebody's rights have changed: those of a user, or of people in an organization. */
export interface RightsNotification {
  readonly of: 'organization' | 'user';
  readonly id: string;
}

/** Some notices of one process, in their order. */
export interface NotificationBatch {
  /** Unique; the same for all who receive it. */
  readonly id: string;
  readonly notifications: readonly Notification[];
  /** Other notices were lost. */
  readonly isPartial: boolean;
}

/** The channel of all notices. */
export const liveChannel = 'holdfast_live';
/** Under this name, triggers raise what a transaction has changed (migration 0052). */
export const raisedName = 'holdfast_live';

const lostLine = 'lost';

/** As triggers write it: kind, organization, stack, update. Null if it is of a kind that a newer release has. */
export function parseNotification(text: string): Notification | null {
  const [kind, organizationId, stackId, updateId] = text.split(' ');
  const known = kinds.find((each) => each === kind);
  return known
    ? { kind: known, organizationId: id(organizationId), stackId: id(stackId), updateId: id(updateId) }
    : null;
}

export function formatNotification({ kind, organizationId, stackId, updateId }: Notification): string {
  return [kind, organizationId ?? '-', stackId ?? '-', updateId ?? '-'].join(' ');
}

/** The payload of a notification. */
export function formatBatch({ id: batchId, isPartial, notifications }: NotificationBatch): string {
  return [batchId, ...(isPartial ? [lostLine] : []), ...notifications.map(formatNotification)].join('\n');
}

/** Reads the payload of a notification; null: it is none that this release knows. */
export function parsePayload(payload: string): NotificationBatch | RightsNotification | null {
  const [head = '', ...lines] = payload.split('\n');
  const [word, of, rightsOf] = head.split(' ');
  if (word === 'rights')
    return (of === 'organization' || of === 'user') && rightsOf !== undefined ? { of, id: rightsOf } : null;
  const isPartial = lines.includes(lostLine);
  return {
    id: head,
    isPartial,
    notifications: lines.map(parseNotification).filter((notification) => notification !== null),
  };
}

function id(text: string | undefined): string | null {
  return text === undefined || text === '-' ? null : text;
}
