const kinds = [
  'update.created',
  'update.started',
  'update.ended',
  'events.appended',
  'stack.changed',
  'queue.changed',
  'index.changed',
] as const;

/** The kind of a change. */
export type NotificationKind = (typeof kinds)[number];

/** A committed change, for the pages that show it. Ids are database ids; null if unknown or not applicable. */
export interface Notification {
  readonly kind: NotificationKind;
  readonly organizationId: string | null;
  readonly stackId: string | null;
  readonly updateId: string | null;
}

/** A change of the rights of a user, or of the members of an organization. */
export interface RightsNotification {
  readonly of: 'organization' | 'user';
  readonly id: string;
}

/** Notifications of one process, in order. */
export interface NotificationBatch {
  /** Unique, and the same for all receivers. */
  readonly id: string;
  readonly notifications: readonly Notification[];
  /** Whether other notifications were lost. */
  readonly isPartial: boolean;
}

/** The channel of all notifications. */
export const liveChannel = 'holdfast_live';
/** The name under which triggers raise the changes of a transaction. */
export const raisedName = 'holdfast_live';

const lostLine = 'lost';

/** Parses a notification as triggers write it: kind, organization, stack, update. Null if the kind is unknown. */
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

/** Formats the payload of a notification. */
export function formatBatch({ id: batchId, isPartial, notifications }: NotificationBatch): string {
  return [batchId, ...(isPartial ? [lostLine] : []), ...notifications.map(formatNotification)].join('\n');
}

/** Parses the payload of a notification; null if this release does not know it. */
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
