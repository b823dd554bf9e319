import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { isEditConflict } from './api-error.ts';
import { mergedDraft } from './merged-draft.ts';
import { editTexts } from './texts.tsx';

interface Sent {
  readonly error: { readonly message: string } | null;
  readonly isPending: boolean;
  readonly reset: () => void;
}

/** Others may edit the item meanwhile. `item` is null for a new one. `read` loads the current version without losing the draft. */
export function useEdit<Item, Draft extends object>({
  draftOf,
  item,
  loaded = editTexts.loaded,
  read,
}: {
  readonly item: Item;
  readonly draftOf: (item: Item) => Draft;
  /** The message of the form after loading the current version. */
  readonly loaded?: string;
  readonly read: () => Promise<Item>;
}) {
  // The item as of when the form was opened: the page below continues to refresh it.
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
    /** The version that was last read: the request changes this version. */
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

/** Like `useEdit`, for a dialog that confirms a removal. `item`: the shown version, which is removed if nobody has edited it since. */
export function useRemoval<Item>({ item, read }: { readonly item: Item; readonly read: () => Promise<Item> }) {
  const loaded = editTexts.loadedBeforeRemoval;
  const { base, dialog } = useEdit({ item, draftOf: () => ({}), loaded, read });
  return { item: base, dialog };
}
