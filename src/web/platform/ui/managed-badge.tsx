import { Badge } from './badge.tsx';
import { managedBadgeTexts } from './texts.tsx';

/** Marks an object that a configuration under version control declares: the next `holdfast apply` undoes manual changes. */
export function ManagedBadge() {
  return <Badge title={managedBadgeTexts.why}>{managedBadgeTexts.managed}</Badge>;
}
