import type { ReactNode } from 'react';
import { counted } from '../../platform/ui/counted.ts';

export const deletedStackTexts = {
  actions: 'Actions',
  deleteForGood: 'Delete for good…',
  deleted: 'Deleted',
  deletedStacks: 'Deleted stacks',
  deletedBy: (login: string, at: ReactNode) => (
    <>
      {login}, {at}
    </>
  ),
  lead: 'States, history and secrets of deleted stacks are kept for a few days, and the stacks can be restored until then. Their resources in the cloud were not touched.',
  legalHold: 'never: legal hold',
  none: 'No stack can be restored',
  noneHint: 'Deleted stacks appear here until their retention period ends.',
  resources: 'Resources',
  deletedForGood: 'Deleted for good',
  restore: 'Restore',
  restoreStack: (stack: string) => `Restore ${stack}`,
  stack: 'Stack',
} as const;

export const restoreStackTexts = {
  action: 'Restore',
  lead: (state: string) =>
    `It is restored as it was, ${state}, with its history, tags and secrets. Grants and rules for its name apply to it again. Nothing changes in the cloud.`,
  name: 'Name',
  nameHint: 'Under another name, the state gets that name, in a new version.',
  nameTaken: (stack: string) => `Another stack is now named ${stack}. The state gets the new name, in a new version.`,
  title: (stack: string) => `Restore ${stack}?`,
  version: (version: number, resources: number) => `at version ${version} with ${counted(resources, 'resource')}`,
  withoutVersion: 'without a version',
} as const;

export const purgeStackTexts = {
  action: 'Delete for good',
  lead: 'Its secrets can no longer be decrypted, and its states and history are deleted. After that, it can only be restored from a backup of the whole server.',
  title: (stack: string) => `Delete ${stack} for good?`,
} as const;
