import { Badge } from './badge.tsx';

/** Of something that a configuration under version control declares: the next `holdfast apply` undoes changes by hand. */
export function ManagedBadge() {
  return (
    <Badge title="Declared by a configuration: the next holdfast apply undoes changes by hand">Managed by apply</Badge>
  );
}
