import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Attention } from '../../platform/app/procedure-types.ts';

import { ExternalLink } from '../../platform/ui/external-link.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { shortCommit, viewKind } from '../../updates/update-status.ts';
import type { StackSearch } from '../stack-filter.ts';
import styles from './attention-page.module.css';
import { attentionTexts } from './texts.tsx';

export interface AttentionRow {
  readonly key: string;
  readonly organization: string;
  /** Null: several stacks, found by `search`. */
  readonly stack: { readonly project: string; readonly stack: string } | null;
  readonly search?: StackSearch;
  /** The link's text if there is no single stack. */
  readonly scope?: string;
  readonly reason: ReactNode;
  readonly since: string;
  readonly by: string | null;
}

type Trouble = Attention['failed']['items'][number];

export function troubleRow(item: Trouble): AttentionRow {
  const { by, ciUrl, commit, kind, organization, project, since, stack, trouble, updateId, version } = item;

  const update = `${viewKind({ kind })}${version === null ? '' : ` ${version}`}`;
  // A newer server may have other troubles.
  const name = attentionTexts.trouble[trouble]?.(update) ?? `${update}: ${trouble}`;
  const [message] = item.message.split('\n');
  return {
    key: `${trouble} ${updateId}`,
    ...{ organization, stack: { project, stack }, since, by },
    reason: (
      <>
        {version === null ? (
          <Link
            to="/$organization/$project/$stack/previews/$updateId"
            params={{ organization, project, stack, updateId }}
          >
            {name}
          </Link>
        ) : (
          <Link
            to="/$organization/$project/$stack/updates/$version"
            params={{ organization, project, stack, version: String(version) }}
          >
            {name}
          </Link>
        )}
        {message ? <span className={styles['text']}>{message}</span> : null}
        <Origin commit={commit} ciUrl={ciUrl} />
      </>
    ),
  };
}

export function approvalRow(item: Attention['approvals']['items'][number]): AttentionRow {
  const { askedAt, askedBy, ciUrl, commit, id, kind, organization, project, request, stack } = item;
  return {
    key: id,
    ...{ organization, stack: { project, stack }, since: askedAt, by: askedBy },
    reason: (
      <>
        <Link to="/$organization/~/approvals" params={{ organization }}>
          {attentionTexts.waitsForApproval(viewKind({ kind }))}
        </Link>
        {request === '' ? null : <span className={styles['text']}>{request}</span>}
        <Origin commit={commit} ciUrl={ciUrl} />
      </>
    ),
  };
}

export function freezeRow(item: Attention['frozen']['items'][number]): AttentionRow {
  const { by, id, note, organization, project, scope, since, stack, stacks, tag, until } = item;
  const search = {
    status: 'frozen' as const,
    ...(project === null ? {} : { project }),
    ...(tag === null ? {} : { tag: `${tag.name}=${tag.value}` }),
  };
  return {
    key: id,
    ...{ organization, search, scope, since, by: by ?? attentionTexts.operator },
    stack: project === null || stack === null ? null : { project, stack },
    reason: (
      <>
        <span>{stack === null ? freezesText(stacks) : attentionTexts.frozen}</span>
        {note === '' ? null : <span className={styles['text']}>{note}</span>}
        {until === null ? null : <span className={styles['text']}>{attentionTexts.ends(<Time at={until} />)}</span>}
      </>
    ),
  };
}

export function waitRow(item: Attention['queued']['items'][number]): AttentionRow {
  const { by, ciUrl, commit, kind, organization, placeId, position, project, since, stack } = item;
  return {
    key: placeId ?? '',
    ...{ organization, stack: { project, stack }, since, by },
    reason: (
      <>
        <Link to="/$organization/~/ci" params={{ organization }}>
          {attentionTexts.waitsAt(kind === null ? attentionTexts.run : viewKind({ kind }), position)}
        </Link>
        <Origin commit={commit} ciUrl={ciUrl} />
      </>
    ),
  };
}

function Origin({ ciUrl, commit }: { readonly ciUrl: string | null; readonly commit: string | null }) {
  if (ciUrl === null && commit === null) return null;
  return (
    <span className={styles['minor']}>
      {commit === null ? null : <code title={commit}>{shortCommit(commit)}</code>}
      {ciUrl === null ? null : <ExternalLink href={ciUrl}>{attentionTexts.ciRun}</ExternalLink>}
    </span>
  );
}

/** The server counts only up to 101. */
export const maxCounted = 100;

function freezesText(stacks: number): string {
  return stacks > maxCounted ? attentionTexts.freezesMoreThan(maxCounted) : attentionTexts.freezes(stacks);
}
