import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Blame, StackRef } from '../../platform/app/procedure-types.ts';
import { stopsUnread, trpc } from '../../platform/app/trpc.ts';
import { ExternalLink } from '../../platform/ui/external-link.tsx';
import { relativeTime } from '../../platform/ui/relative-time.ts';
import { CommitLink } from '../../updates/commit-link.tsx';
import { blameTexts } from '../texts.tsx';
import styles from './blame-note.module.css';
import { blameOf } from './blamed-path.ts';

export function useBlame(stack: StackRef, urn: string, isEnabled: boolean) {
  const { organization, project, stack: name } = stack;
  return useQuery(
    trpc.resources.blame.queryOptions(
      { organization, project, stack: name, urn },
      { ...stopsUnread, enabled: isEnabled },
    ),
  );
}

export function annotation(
  blame: Blame | undefined,
  stack: StackRef,
  part: 'inputs' | 'outputs',
): ((path: string) => ReactNode) | undefined {
  if (blame === undefined) return undefined;
  return (path) => (
    <BlameNote blame={blame} stack={stack} path={path.startsWith('[') ? part + path : `${part}.${path}`} />
  );
}

function BlameNote({ blame, path, stack }: { readonly blame: Blame; readonly stack: StackRef; readonly path: string }) {
  const found = blameOf(blame.properties, path);
  if (found === null) return null;
  const { isExact, version } = found;
  if (version === null) return <span className={styles['note']}>{blameTexts.notKnown}</span>;
  if (version === 0) return <span className={styles['note']}>{blameTexts.sinceBeginning}</span>;
  if (!isExact)
    return (
      <span className={styles['note']} title={blameTexts.notExact}>
        {version === blame.headVersion ? blameTexts.versionOrBefore(version) : blameTexts.beforeVersion(version + 1)}
      </span>
    );
  const change = blame.changes.find((each) => each.version === version);
  return (
    <span className={styles['note']}>
      <Link
        to="/$organization/$project/$stack/updates/$version"
        params={{ ...stack, version: String(version) }}
        title={change === undefined ? undefined : `${change.kind}, ${relativeTime(new Date(change.at), new Date())}`}
      >
        {blameTexts.version(version)}
      </Link>
      {change?.commit == null ? null : <CommitLink commit={change.commit} stack={stack} />}
      {change?.by == null ? null : <span>{change.by}</span>}
      {change?.ciUrl == null ? null : <ExternalLink href={change.ciUrl}>{blameTexts.ci}</ExternalLink>}
    </span>
  );
}
