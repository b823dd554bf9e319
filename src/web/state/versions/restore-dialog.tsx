import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { StackRef } from '../../platform/app/procedure-types.ts';
import { queryClient, trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { restoreTexts } from '../texts.tsx';
import styles from './restore-dialog.module.css';
import { VersionDiff } from './version-diff.tsx';

/** First shows the changes to the state. */
export function RestoreDialog({
  headVersion,
  idOf,
  onClose,
  onRestored,
  stack,
  version,
}: {
  readonly stack: StackRef;
  readonly version: number;
  readonly idOf: (version: number) => string;
  readonly headVersion: number;
  readonly onRestored: (from: number, to: number) => void;
  readonly onClose: () => void;
}) {
  // The user confirms the shown difference, so a newer version must not slip in.
  const [seen] = useState(headVersion);
  const restoring = useMutation(
    trpc.versions.restore.mutationOptions({
      onSuccess: () => {
        for (const changed of [trpc.stacks, trpc.versions, trpc.updates, trpc.resources])
          void queryClient.invalidateQueries({ queryKey: changed.pathKey() });
      },
    }),
  );
  return (
    <ActionDialog
      title={restoreTexts.restore(version)}
      description={restoreTexts.lead(seen)}
      action={restoreTexts.restore(version)}
      isDanger
      isPending={restoring.isPending}
      error={restoring.error}
      typed={stack.stack}
      onClose={onClose}
      onSubmit={() =>
        restoring.mutate(
          { ...stack, version, headVersion: seen },
          { onSuccess: (restored) => onRestored(seen, restored.version) },
        )
      }
    >
      <p className={styles['note']}>{restoreTexts.note(<code>pulumi preview --refresh</code>)}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it. */}
      <section className={styles['diff']} aria-label={restoreTexts.whatChanges} tabIndex={0}>
        <VersionDiff stack={stack} from={seen} to={version} idOf={idOf} />
      </section>
    </ActionDialog>
  );
}
