import { Badge } from './badge.tsx';
import { managedBadgeTexts } from './texts.tsx';

/** Of something that a configuration under version control declares: the next `holdfast apply` undoes changes by hand. */
export function ManagedBadge() {
  return <Badge title={managedBadgeTexts.why}>{managedBadgeTexts.managed}</Badge>;
}
