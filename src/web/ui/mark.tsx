/** The name mark: three roots that grip a short base line. */
export function Mark({ size = 22 }: { readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      aria-hidden="true"
    >
      <path d="M12 3v17M12 9c0 5.5-6 4-6 11M12 9c0 5.5 6 4 6 11M3 20.5h18" />
    </svg>
  );
}
