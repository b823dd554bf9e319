import { Lock } from 'lucide-react';
import type { ResourceItem } from '../../platform/app/procedure-types.ts';
import { shortType } from '../../platform/app/resource-name.ts';
import { CutName } from '../../platform/ui/cut-name.tsx';
import { RowButton } from '../../platform/ui/row-button.tsx';
import { resourceListTexts } from '../texts.tsx';
import styles from './resource-list.module.css';

/** A resource pending deletion has the URN of its replacement, and a state may contain several. */
export function withKeys<Item extends Pick<ResourceItem, 'isDeleted' | 'urn'>>(
  resources: readonly Item[],
): { readonly key: string; readonly resource: Item }[] {
  const counts = new Map<string, number>();
  return resources.map((resource) => {
    const { isDeleted, urn } = resource;
    if (!isDeleted) return { key: urn, resource };
    const count = (counts.get(urn) ?? 0) + 1;
    counts.set(urn, count);
    return { key: `${urn} ${count}`, resource };
  });
}

interface ResourceRowProps {
  readonly resource: Pick<
    ResourceItem,
    'changedIn' | 'isDeleted' | 'name' | 'protect' | 'provider' | 'providerVersion' | 'type' | 'urn'
  >;
  readonly isChosen: boolean;
  readonly onOpen: (urn: string) => void;
}

/** A resource pending deletion cannot be opened, because its URN leads to its replacement. */
export function ResourceRow({ isChosen, onOpen, resource }: ResourceRowProps) {
  const { isDeleted, urn } = resource;
  const facts = (
    <>
      <CutName text={resource.name} className={styles['name']} />
      <span className={styles['type']}>
        {isDeleted ? `${resourceListTexts.toBeDeleted} · ` : ''}
        {shortType(resource.type)}
      </span>
      <span className={styles['flags']}>
        {resource.protect ? <Lock size={12} aria-label={resourceListTexts.protected} /> : null}
      </span>
      <span className={styles['provider']}>
        {resource.provider} {resource.providerVersion}
      </span>
      <span className={styles['changed']}>
        {resource.changedIn === null ? '' : resourceListTexts.changedIn(resource.changedIn)}
      </span>
    </>
  );
  if (isDeleted)
    return (
      <div className={`${styles['row']} ${styles['closed']}`} title={urn}>
        {facts}
      </div>
    );
  return (
    <RowButton
      className={styles['row']}
      aria-current={isChosen ? 'true' : undefined}
      title={urn}
      onClick={() => onOpen(urn)}
    >
      {facts}
    </RowButton>
  );
}
