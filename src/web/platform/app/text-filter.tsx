import { useEffect, useState } from 'react';
import { TextField } from '../ui/field.tsx';
import { LoginField } from './suggest-fields.tsx';

const typingMs = 250;

/** A field that narrows a list once somebody pauses. `value`: what the URL has. */
export function TextFilter({
  label,
  onChange,
  organization,
  placeholder,
  value = '',
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
  readonly placeholder?: string;
  /** Suggests members of this organization. */
  readonly organization?: string;
}) {
  const [draft, setDraft] = useState(value);
  // The URL changed by other means, such as "back".
  const [seen, setSeen] = useState(value);
  if (value !== seen) {
    setSeen(value);
    if (value !== draft.trim()) setDraft(value);
  }
  useEffect(() => {
    if (draft.trim() === value) return undefined;
    const timer = setTimeout(() => onChange(draft.trim() || undefined), typingMs);
    return () => clearTimeout(timer);
  });
  const field = { label, placeholder, type: 'search', value: draft, maxLength: 200 } as const;
  return organization === undefined ? (
    <TextField {...field} onChange={({ target }) => setDraft(target.value)} />
  ) : (
    <LoginField {...field} organization={organization} onChange={setDraft} />
  );
}
