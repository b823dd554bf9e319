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

/** Something that was committed, for the pages that show it. Ids are database ids; null: not known or not applicable. */
export interface Notification {
  readonly kind: NotificationKind;
  readonly organizationId: string | null;
  readonly stackId: string | null;
  readonly updateId: string | null;
}

/** Rights have changed: the rights of a user, or of members of an organization. */
export interface RightsNotification {
  readonly of: 'organization' | 'user';
  readonly id: string;
}

/** Notifications of one process, in order. */
export interface NotificationBatch {
  /** Unique; the same for all receivers. */
  readonly id: string;
  readonly notifications: readonly Notification[];
  /** Other notifications were lost. */
  readonly isPartial: boolean;
}

/** The channel of all notifications. */
export const liveChannel = 'holdfast_live';
/** Under this name, triggers raise the changes of a transaction. */
export const raisedName = 'holdfast_live';

const lostLine = 'lost';

/** As triggers write it: kind, organization, stack, update. Null if the kind is unknown. */
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

/** Reads the payload of a notification; null: it is not one that this release knows. */
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
