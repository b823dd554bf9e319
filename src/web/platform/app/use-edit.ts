import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { isEditConflict } from './api-error.ts';
import { mergedDraft } from './merged-draft.ts';

/** A change that is being sent. */
interface Sent {
  readonly error: { readonly message: string } | null;
  readonly isPending: boolean;
  readonly reset: () => void;
}

/**
 * The draft of a form for something that others may edit meanwhile: `item`, null for a new one. What is there now can be loaded by `read`
 * without losing what was typed.
 */
export function useEdit<Item, Draft extends object>({
  draftOf,
  item,
  loaded = 'This is what is there now, with what you have changed in it. Nothing is saved yet.',
  read,
}: {
  readonly item: Item;
  readonly draftOf: (item: Item) => Draft;
  /** What the form says after that. */
  readonly loaded?: string;
  readonly read: () => Promise<Item>;
}) {
  // As it was when the form was opened: the page below goes on and reads it again.
  const [base, setBase] = useState(() => ({ item, draft: draftOf(item) }));
  const [draft, setDraft] = useState(base.draft);
  const [isMerged, setIsMerged] = useState(false);
  const reload = useMutation({
    mutationFn: read,
    onSuccess: (latest) => {
      const shown = draftOf(latest);
      setDraft((typed) => mergedDraft(base.draft, typed, shown));
      setBase({ item: latest, draft: shown });
      setIsMerged(true);
    },
  });
  return {
    draft,
    change: (part: Partial<Draft>) => setDraft((typed) => ({ ...typed, ...part })),
    /** What was read last: what is sent is a change of this. */
    base: base.item,
    /** For the dialog. */
    dialog: ({ error, isPending, reset }: Sent) => ({
      error: reload.error ?? error,
      isPending: isPending || reload.isPending,
      onReload: isEditConflict(error) ? () => reload.mutate(undefined, { onSuccess: reset }) : null,
      note: isMerged && error === null ? loaded : null,
    }),
  };
}

/** The same for a dialog that asks before something is removed. `item`: what it shows, and what is removed if nobody has edited it since. */
export function useRemoval<Item>({ item, read }: { readonly item: Item; readonly read: () => Promise<Item> }) {
  const loaded = 'This is what is there now. Nothing is removed yet.';
  const { base, dialog } = useEdit({ item, draftOf: () => ({}), loaded, read });
  return { item: base, dialog };
}
