import { Badge } from './badge.tsx';
import { managedBadgeTexts } from './texts.tsx';

/** The next `holdfast apply` undoes manual changes to the object. */
export function ManagedBadge() {
  return <Badge title={managedBadgeTexts.why}>{managedBadgeTexts.managed}</Badge>;
}
