const kinds = [
  'update.created',
  'update.started',
  'update.ended',
  'events.appended',
  'stack.changed',
  'queue.changed',
  'index.changed',
] as const;

export type NotificationKind = (typeof kinds)[number];

/** For the pages that show the change. Ids are null if unknown or not applicable. */
export interface Notification {
  readonly kind: NotificationKind;
  readonly organizationId: string | null;
  readonly stackId: string | null;
  readonly updateId: string | null;
}

/** The rights of a user, or the members of an organization, have changed. */
export interface RightsNotification {
  readonly of: 'organization' | 'user';
  readonly id: string;
}

/** All from one process, in order. */
export interface NotificationBatch {
  /** The same for all receivers. */
  readonly id: string;
  readonly notifications: readonly Notification[];
  /** Other notifications were lost. */
  readonly isPartial: boolean;
}

export const liveChannel = 'holdfast_live';
/** Triggers raise the changes of a transaction under this name. */
export const raisedName = 'holdfast_live';

const lostLine = 'lost';

/** Triggers write the kind, organization, stack and update. Null if the kind is unknown. */
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

export function formatBatch({ id: batchId, isPartial, notifications }: NotificationBatch): string {
  return [batchId, ...(isPartial ? [lostLine] : []), ...notifications.map(formatNotification)].join('\n');
}

/** Null if this release does not know the payload. */
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
