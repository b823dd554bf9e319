/** The states of an update, spelled as in the contract. */
export type UpdateStatus = 'not started' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type EndStatus = 'succeeded' | 'failed' | 'cancelled';
export type UpdateKind = 'update' | 'preview' | 'refresh' | 'destroy' | 'import' | 'rename';

export type UpdateTrigger =
  | { readonly type: 'complete'; readonly status: EndStatus }
  | { readonly type: 'cancel' }
  | { readonly type: 'expire' };

/**
 * What a trigger does in a state: move to `to`, change nothing (a repeat of what was already done), or fail because the lease
 * is dead.
 */
export type Transition =
  | { readonly outcome: 'move'; readonly to: UpdateStatus }
  | { readonly outcome: 'repeat' }
  | { readonly outcome: 'lease-dead' };

const repeat: Transition = { outcome: 'repeat' };
const leaseDead: Transition = { outcome: 'lease-dead' };

export function isActive(status: UpdateStatus): boolean {
  return status === 'not started' || status === 'running';
}

/**
 * How an update ends. Starts are not handled here: they are one statement that checks the state itself. Imports and renames
 * are created as `succeeded`.
 */
export function transition(status: UpdateStatus, trigger: UpdateTrigger): Transition {
  switch (trigger.type) {
    case 'complete':
      if (status === 'running') return { outcome: 'move', to: trigger.status };
      // The reply to the first call was lost: the CLI repeats it with the same status.
      return status === trigger.status ? repeat : leaseDead;
    case 'cancel':
      // Cancelling an ended update is not an error for the CLI, and changes nothing.
      return isActive(status) ? { outcome: 'move', to: 'cancelled' } : repeat;
    case 'expire':
      return isActive(status) ? { outcome: 'move', to: 'cancelled' } : repeat;
  }
}
