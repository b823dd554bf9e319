import { createStoredList } from '../platform/ui/stored-value.ts';

const maxKept = 50;

/** They are stored in this browser. */
const dismissed = createStoredList<string>('holdfast.dismissed-steps', (stored) =>
  stored.filter((each) => typeof each === 'string').slice(-maxKept),
);

export function dismissSteps(organization: string): void {
  const others = dismissed.read().filter((each) => each !== organization);
  dismissed.set([...others, organization].slice(-maxKept));
}

export function useIsDismissed(organization: string): boolean {
  return dismissed.use().includes(organization);
}
