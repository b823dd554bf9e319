import { useState } from 'react';
import type { EmbedItem } from '../platform/app/procedure-types.ts';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Dialog, DialogActions } from '../platform/ui/dialog.tsx';
import { HaltNote } from '../platform/ui/halt-note.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './embed-list.module.css';
import { type EmbedOwner, useCreation, useEmbeds, useRevocation } from './embed-owner.ts';
import { embedListTexts } from './texts.tsx';

const names = embedListTexts.names;

export function EmbedList({ owner }: { readonly owner: EmbedOwner }) {
  const [made, setMade] = useState<{ readonly kind: 'badge' | 'feed'; readonly token: string } | null>(null);
  const [revoked, setRevoked] = useState<EmbedItem | null>(null);
  const [kind, setKind] = useState<'badge' | 'feed'>('badge');
  const creation = useCreation(owner, ({ token }) => {
    setMade({ kind, token });
    void queryClient.invalidateQueries({ queryKey: trpc.embeds.pathKey() });
  });
  const { data, error } = useEmbeds(owner);
  const create = (wanted: 'badge' | 'feed'): void => {
    setKind(wanted);
    creation.create(wanted);
  };
  const problem = creation.error ?? error;
  return (
    <div className={styles['embeds']}>
      <div className={styles['actions']}>
        {'stack' in owner ? (
          <Button size="small" disabled={creation.isPending} onClick={() => create('badge')}>
            {embedListTexts.createABadge}
          </Button>
        ) : null}
        <Button size="small" disabled={creation.isPending} onClick={() => create('feed')}>
          {embedListTexts.createAFeed}
        </Button>
      </div>
      {problem ? (
        <p className={styles['error']} role="alert">
          {problem.message}
        </p>
      ) : null}
      {data === undefined || data.items.length === 0 ? null : (
        <ul className={styles['list']}>
          {data.items.map((item) => (
            <li key={item.id}>
              <span>{embedListTexts.createdBy(names[item.kind], item.createdBy, <Time at={item.createdAt} />)}</span>
              <Button
                size="small"
                kind="quiet"
                aria-label={embedListTexts.revokeOf(item.kind, item.createdBy)}
                onClick={() => {
                  creation.reset();
                  setRevoked(item);
                }}
              >
                {embedListTexts.revoke}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {made === null ? null : (
        <MadeDialog
          owner={owner}
          {...made}
          onClose={() => {
            creation.reset();
            setMade(null);
          }}
        />
      )}
      {revoked === null ? null : <RevokeDialog owner={owner} item={revoked} onClose={() => setRevoked(null)} />}
    </div>
  );
}

/** The address is shown only here and only once. */
function MadeDialog({
  kind,
  onClose,
  owner,
  token,
}: {
  readonly owner: EmbedOwner;
  readonly kind: 'badge' | 'feed';
  readonly token: string;
  readonly onClose: () => void;
}) {
  const base = location.origin;
  const badge = `${base}/api/embeds/badge.svg?token=${token}`;
  const page = 'stack' in owner ? [owner.organization, owner.project, owner.stack] : [owner.organization];
  const text =
    kind === 'badge'
      ? `[![Pulumi](${badge})](${base}/${page.map(encodeURIComponent).join('/')})`
      : `${base}/api/embeds/updates.atom?token=${token}`;
  return (
    <Dialog
      title={kind === 'badge' ? embedListTexts.theBadge : embedListTexts.theFeed}
      description={kind === 'badge' ? embedListTexts.badgeDescription : embedListTexts.feedDescription}
      isOpen
      isKept
      onClose={onClose}
    >
      {kind === 'badge' ? (
        <img className={styles['badge']} src={badge} alt={embedListTexts.theBadge} height={20} />
      ) : null}
      <Code>{text}</Code>
      <p className={styles['note']} data-draft="">
        {embedListTexts.shownOnce}
      </p>
      <HaltNote className={styles['error']} />
      <DialogActions>
        <Button kind="main" onClick={onClose}>
          {embedListTexts.done}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function RevokeDialog({
  item,
  onClose,
  owner,
}: {
  readonly owner: EmbedOwner;
  readonly item: EmbedItem;
  readonly onClose: () => void;
}) {
  const { error, isPending, revoke } = useRevocation(owner, thenRefresh(onClose));
  return (
    <ActionDialog
      title={embedListTexts.revokeQuestion(item.kind)}
      description={item.kind === 'badge' ? embedListTexts.badgeRevoked : embedListTexts.feedRevoked}
      action={embedListTexts.revokeKind(item.kind)}
      isDanger
      error={error}
      isPending={isPending}
      onSubmit={() => revoke(item.id)}
      onClose={onClose}
    />
  );
}
