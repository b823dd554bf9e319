import { Link } from '@tanstack/react-router';
import { ExternalLink, Star } from 'lucide-react';
import { memo } from 'react';
import type { StackItem } from '../platform/app/procedure-types.ts';
import { Tag } from '../platform/ui/badge.tsx';
import { CutName } from '../platform/ui/cut-name.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Time } from '../platform/ui/time.tsx';
import { shortCommit } from '../updates/update-status.ts';
import { toggleFavorite } from './favorites.ts';
import type { StackColumn } from './stack-columns.ts';
import { DriftBadge, StackStatus } from './stack-status.tsx';
import styles from './stack-table.module.css';
import { stackRowTexts } from './texts.tsx';

/** Tags that the server or the CLI sets; users' tags are more informative. */
const ownTag = /^(pulumi|git|vcs|gitHub):/;

/** A stack as a row. While the list scrolls, visible rows are not rendered again: `columns` must be a stable reference. */
export const StackRow = memo(function StackRow({
  columns,
  index,
  isFavorite,
  item,
  login,
  offsetPx,
  showsOrganization,
}: {
  readonly columns: readonly StackColumn[];
  readonly item: StackItem;
  readonly index: number;
  readonly isFavorite: boolean;
  readonly login: string | undefined;
  readonly offsetPx: number;
  readonly showsOrganization: boolean;
}) {
  const { organization, project, stack } = item;
  const name = nameOf(item);
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={styles['row']}
      style={{ transform: `translateY(${offsetPx}px)` }}
    >
      <div role="cell" className={styles['favorite']}>
        <button
          type="button"
          aria-pressed={isFavorite}
          aria-label={stackRowTexts.favorite(name)}
          onClick={() => toggleFavorite(login, item)}
        >
          <Star size={15} aria-hidden="true" />
        </button>
      </div>
      <div role="cell" className={styles['stack']}>
        <Link
          to="/$organization/$project/$stack"
          params={{ organization, project, stack }}
          data-row={index}
          className={styles['name']}
          title={name}
          aria-label={showsOrganization ? name : `${project}/${stack}`}
        >
          <span className={styles['project']}>
            {showsOrganization ? `${organization}/` : null}
            {project}
          </span>
          <span className={styles['slash']}>/</span>
          <CutName text={stack} className={styles['own']} />
        </Link>
      </div>
      {columns.map((column) => (
        <div key={column} role="cell" className={styles[column]}>
          <Cell column={column} item={item} />
        </div>
      ))}
    </div>
  );
});

function Cell({ column, item }: { readonly column: StackColumn; readonly item: StackItem }) {
  const { active, drift, lastUpdate, resourceCount, updatedAt, version } = item;
  switch (column) {
    case 'status': {
      const ciUrl = active?.ciUrl ?? (active ? null : lastUpdate?.ciUrl) ?? null;
      return (
        <>
          <StackStatus {...item} />
          <DriftBadge drift={drift} />
          {ciUrl === null ? null : (
            <a
              className={styles['ci']}
              href={ciUrl}
              target="_blank"
              rel="noreferrer"
              aria-label={stackRowTexts.ciRunOf(nameOf(item))}
              title={stackRowTexts.ciRun}
            >
              <ExternalLink size={14} aria-hidden="true" />
            </a>
          )}
        </>
      );
    }
    case 'tags':
      return Object.entries(item.tags)
        .filter(([tag]) => !ownTag.test(tag))
        .slice(0, 2)
        .map(([tag, value]) => (
          <Link
            key={tag}
            to="."
            search={(before) => ({ ...before, tag: `${tag}=${value}` })}
            activeOptions={{ exact: true }}
            activeProps={{}}
          >
            <Tag name={tag} value={value} />
          </Link>
        ));
    case 'resources':
      return (
        <>
          {resourceCount?.toLocaleString(numberLocale) ?? '–'}
          <span className={styles['unit']}> {stackRowTexts.resources}</span>
        </>
      );
    case 'changed':
      return <Time at={updatedAt} />;
    case 'version':
      return version === 0 ? '–' : version;
    case 'owner':
      return active?.by ?? '–';
    case 'by':
      return lastUpdate?.by ?? '–';
    case 'commit':
      return lastUpdate?.commit == null ? '–' : <code title={lastUpdate.commit}>{shortCommit(lastUpdate.commit)}</code>;
  }
}

/** Names a stack uniquely across organizations. */
export function nameOf({
  organization,
  project,
  stack,
}: Pick<StackItem, 'organization' | 'project' | 'stack'>): string {
  return `${organization}/${project}/${stack}`;
}
